//! On error number.

use ui_tests::*;

#[idempotent(key = "order.id", on_error = 1)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
