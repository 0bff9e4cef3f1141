//! Option literal alone.

use ui_tests::*;

#[idempotent(42)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
