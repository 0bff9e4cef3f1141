//! Whole arguments and parts of them

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", skip(gateway, order.tenant.id, "order.some-name", order.amount, pair.inner.x))]
pub async fn charge(gateway: &Gateway, order: Order, pair: Vec<u32>) -> Result<u64, Failure> {
    let _ = (gateway, pair);
    Ok(order.amount)
}
