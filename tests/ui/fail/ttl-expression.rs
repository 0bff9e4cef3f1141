//! Ttl expression.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = std::time::Duration::from_secs(60))]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
