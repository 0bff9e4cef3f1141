//! <https://github>.com/tokio-rs/axum/issues/588

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<impl Serialize, Failure> {
    Ok(order.amount)
}

fn main() {}
