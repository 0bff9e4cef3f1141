//! On error unknown.

use ui_tests::*;

#[idempotent(key = "order.id", on_error = "reply")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
