//! <https://github>.com/tokio-rs/tokio/pull/6306

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<(), Failure> {
    Gateway.charge(order.amount).await?;
}

fn main() {}
