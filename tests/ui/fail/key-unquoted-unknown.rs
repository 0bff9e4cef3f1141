//! The compiler knows better what is in scope.

use ui_tests::*;

#[idempotent(key = ordr.id)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
