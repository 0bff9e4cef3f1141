//! The module has its own `Result`, `Ok`, `Some`, `Box` … <https://github>.com/jprochazk/garde/issues/22

#![deny(warnings)]

use crate::props::{Failure, Order, idempotent};

pub struct Result;
pub struct Option;
pub struct Box;
pub struct Send;
pub struct Future;
pub struct Default;
pub enum Own {
    Ok,
    Err,
    Some,
    None,
}
pub use Own::*;

#[idempotent(key = "order.id", on_error = decide, on_crash = "retry", on_missing_key = "run")]
pub async fn charge(order: Order) -> std::result::Result<u64, Failure> {
    std::result::Result::Ok(order.amount)
}

fn decide(_: &Failure) -> idempotent_runtime::OnError {
    idempotent_runtime::OnError::Retry
}
