//! Option twice.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "24h", ttl = "48h", detached, detached)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
