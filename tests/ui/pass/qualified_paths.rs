//! Absolute paths do not count as too long. <https://github>.com/tokio-rs/tokio/issues/7777

#![deny(warnings)]
#![deny(unused_qualifications, unused_braces, unused_parens, single_use_lifetimes, let_underscore_drop)]

use crate::props::*;

use idempotent_runtime::OnCrash;

pub const POLICY: OnCrash = OnCrash::Retry;

#[idempotent(key = "order.id", on_crash = "retry")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
