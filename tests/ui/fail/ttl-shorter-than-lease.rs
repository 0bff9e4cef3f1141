//! Ttl shorter than lease.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "10s", lease = "30s")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
