//! Lints that few turn on. <https://github>.com/elastio/bon/issues/212

#![deny(warnings, unexpected_cfgs, unknown_lints)]
#![deny(clippy::missing_docs_in_private_items, clippy::let_with_type_underscore, clippy::unused_unit)]

use crate::props::{Failure, Order, idempotent};

/// Returns nothing to speak of.
#[idempotent(key = "order.id", name = "unit")]
pub async fn unit(order: Order) -> Result<(), Failure> {
    drop(order);
    Ok(())
}

/// An attribute whose last segment is that of a known one is left alone.
#[idempotent(key = "order.id", name = "private")]
#[inline]
#[track_caller]
#[allow(ungated_async_fn_track_caller, reason = "what the compiler says of the plain function")]
pub async fn private(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
