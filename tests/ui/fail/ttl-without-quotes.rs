//! A duration is text.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = 5m)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
