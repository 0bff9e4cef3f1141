//! `#![no_implicit_prelude]`. <https://github>.com/tokio-rs/tokio/issues/5683 and 6071

#![deny(warnings)]
#![no_implicit_prelude]

use crate::props::{Failure, Order, idempotent};
use ::idempotent_runtime::OnError;

#[idempotent(key = "order.id", on_error = |_| OnError::Retry, on_crash = "retry")]
pub async fn charge(order: Order) -> ::core::result::Result<u64, Failure> {
    ::core::result::Result::Ok(order.amount)
}
