//! Attributes on arguments stay where they are

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id")]
pub async fn charge(
    #[allow(unused_mut)] mut order: Order,
    #[expect(unused_mut)] mut amount: u64,
) -> Result<u64, Failure> {
    Ok(order.amount + amount)
}
