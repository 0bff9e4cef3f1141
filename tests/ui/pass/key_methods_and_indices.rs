//! Selectors through methods and tuples

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id(), pair.0, nested.0.1, order.tenant.id")]
pub async fn charge(order: Order, pair: (u32, u32), nested: ((u32, u32),)) -> Result<u32, Failure> {
    let _ = order;
    Ok(pair.0 + nested.0.1)
}
