//! All fingerprinted arguments

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "*", skip(gateway))]
pub async fn charge(gateway: &Gateway, order: Order) -> Result<u64, Failure> {
    let _ = gateway;
    Ok(order.amount)
}
