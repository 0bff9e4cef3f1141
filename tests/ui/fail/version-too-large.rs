//! Version too large.

use ui_tests::*;

#[idempotent(key = "order.id", version = 4294967296)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
