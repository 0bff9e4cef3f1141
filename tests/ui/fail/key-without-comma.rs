//! Two selectors without a comma.

use ui_tests::*;

#[idempotent(key = "order.id order.amount")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
