//! Ttl zero.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "0s")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
