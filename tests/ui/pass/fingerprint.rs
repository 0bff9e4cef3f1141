//! Only these values count

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", fingerprint = "order.amount, order.tenant.id")]
pub async fn quoted(gateway: &Gateway, order: Order) -> Result<u64, Failure> {
    let _ = gateway;
    Ok(order.amount)
}

#[idempotent(key = "order.id", fingerprint = (order.amount, order.id.len()))]
pub async fn unquoted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
