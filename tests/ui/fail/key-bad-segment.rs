//! Key bad segment.

use ui_tests::*;

#[idempotent(key = "order.some-id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
