//! With `fingerprint` nothing is asked of an argument that it does not name

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", fingerprint = "order.amount")]
pub async fn charge(_: Gateway, order: Order, _pool: Pool) -> Result<u64, Failure> {
    Ok(order.amount)
}
