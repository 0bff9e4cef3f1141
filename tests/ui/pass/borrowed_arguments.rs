//! Nothing has to be `'static`. <https://github>.com/jaemk/cached/issues/84

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id")]
pub async fn charge(order: &Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

pub async fn caller() -> Result<u64, Failure> {
    let order = Order::new();
    charge(&order).await
}
