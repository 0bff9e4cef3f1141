//! Inner attributes of the body. <https://github>.com/tokio-rs/tracing/pull/2307

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    #![allow(unused_variables)]
    #![allow(clippy::no_effect_underscore_binding)]
    let unused = 1;
    let _unused = 2;
    Ok(order.amount)
}
