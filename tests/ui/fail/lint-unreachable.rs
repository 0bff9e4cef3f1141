//! The user's own unreachable statement still warns. <https://github>.com/tokio-rs/axum/issues/2004

#![deny(warnings)]

use ui_tests::*;

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    return Ok(order.amount);
    Ok(1)
}

fn main() {}
