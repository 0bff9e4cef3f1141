//! Key no such method.

use ui_tests::*;

#[idempotent(key = "order.identity()")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
