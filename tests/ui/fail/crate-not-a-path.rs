//! Crate not a path.

use ui_tests::*;

#[idempotent(key = "order.id", crate = "not a path")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
