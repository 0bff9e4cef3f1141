//! A block without a value.

use ui_tests::*;

#[idempotent(key = {})]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
