//! No call in the expansion is a use of the function. <https://github>.com/dtolnay/thiserror/issues/72

#![deny(warnings)]

use crate::props::*;

#[deprecated]
#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
