//! Crate elsewhere.

use ui_tests::*;

#[idempotent(key = "order.id", crate = "::nowhere::idempotent_runtime")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
