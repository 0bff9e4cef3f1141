//! A value is named twice, without quotes.

use ui_tests::*;

#[idempotent(key = (order.id, order.amount, order.id))]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
