//! Key template unopened.

use ui_tests::*;

#[idempotent(key = "charge-order.id}")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
