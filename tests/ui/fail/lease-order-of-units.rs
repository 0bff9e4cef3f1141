//! Lease order of units.

use ui_tests::*;

#[idempotent(key = "order.id", lease = "30s 1m")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
