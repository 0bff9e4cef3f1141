//! Key no such method.

use ui_tests::*;

#[idempotent(key = "order.identity()")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
