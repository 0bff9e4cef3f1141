//! Option without value.

use ui_tests::*;

#[idempotent(key = "order.id", ttl, wait =)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
