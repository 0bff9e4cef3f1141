//! Ttl unknown unit.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "24 hourz")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
