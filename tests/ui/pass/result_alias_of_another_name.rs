//! <https://github>.com/near/near-sdk-rs/issues/852

#![deny(warnings)]

use crate::props::*;

type Reply = Result<Receipt, Failure>;
type Of<T> = Result<T, Failure>;

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Reply {
    Ok(Receipt { id: order.id })
}

#[idempotent(key = "order.id")]
pub async fn refund(order: Order) -> Of<u64> {
    Ok(order.amount)
}
