//! Several parts

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.tenant.id, order.id")]
pub async fn quoted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = (order.tenant.id, order.id))]
pub async fn unquoted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
