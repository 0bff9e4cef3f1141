//! The function answers something else.

use ui_tests::*;

fn decide(_: &Failure) -> bool {
    true
}

#[idempotent(key = "order.id", on_error = decide)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
