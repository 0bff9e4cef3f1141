//! A template, with escaped braces

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "charge-{order.id}-of-{order.tenant.id}-{{literally}}")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
