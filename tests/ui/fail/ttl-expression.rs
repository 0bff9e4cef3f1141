//! Ttl expression.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = std::time::Duration::from_secs(60))]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
