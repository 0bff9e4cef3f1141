//! On crash unknown.

use ui_tests::*;

#[idempotent(key = "order.id", on_crash = "retry-before-effects")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
