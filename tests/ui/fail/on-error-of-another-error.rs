//! The function takes another error.

use ui_tests::*;

fn decide(_: &String) -> idempotent_runtime::OnError {
    idempotent_runtime::OnError::Retry
}

#[idempotent(key = "order.id", on_error = decide)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
