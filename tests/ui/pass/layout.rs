//! Tokens on one line. <https://github>.com/tokio-rs/tracing/issues/1613

#![deny(warnings)]

use crate::props::*;

#[rustfmt::skip]
#[idempotent(key = "order.id")] pub async fn charge(order: Order) -> Result<u64, Failure> { if order.amount > 1 { return Ok(1); } else if order.amount > 0 { return Ok(0); } Ok(order.amount) }
