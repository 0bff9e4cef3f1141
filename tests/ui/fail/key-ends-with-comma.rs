//! A comma, and nothing after it.

use ui_tests::*;

#[idempotent(key = "order.id, ")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
