//! Key template unopened.

use ui_tests::*;

#[idempotent(key = "charge-order.id}")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
