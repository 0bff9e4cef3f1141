//! Ttl unknown unit.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "24 hourz")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
