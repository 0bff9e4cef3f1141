//! A macro below ours sees an `async fn`. <https://github>.com/tokio-rs/tokio/issues/1336

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", name = "below")]
#[tracing::instrument(skip(order))]
pub async fn below(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[tracing::instrument(skip(order))]
#[idempotent(key = "order.id", name = "above")]
pub async fn above(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
