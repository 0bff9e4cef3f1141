//! Key number.

use ui_tests::*;

#[idempotent(key = 7)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
