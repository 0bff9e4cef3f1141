//! Detached with value.

use ui_tests::*;

#[idempotent(key = "order.id", detached = true)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
