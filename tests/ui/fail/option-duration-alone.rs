//! A duration alone.

use ui_tests::*;

#[idempotent(key = "order.id", "24h")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
