//! Ttl fraction.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "1.5h")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
