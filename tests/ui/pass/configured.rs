//! `#[cfg]` and `#[cfg_attr]` above and below. <https://github>.com/rust-lang/rust/issues/130004

#![deny(warnings)]

use crate::props::*;

#[cfg(all(unix, windows))]
#[idempotent(key = "nothing.id")]
pub async fn never(nothing: Nowhere) {}

#[idempotent(key = "order.id")]
#[cfg(any(unix, windows))]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[cfg_attr(any(unix, windows), idempotent(key = "order.id", name = "conditional"))]
pub async fn conditional(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
