//! A function that nobody calls is reported, once.

#![deny(warnings)]

use crate::props::*;

#[expect(dead_code)]
#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
