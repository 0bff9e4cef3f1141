//! Blanket conversions of the user break no inference

#![deny(warnings)]

use crate::props::*;

pub struct Any;

impl<'a, T> From<&'a T> for Any {
    fn from(_: &'a T) -> Self {
        Self
    }
}

impl AsRef<Any> for Order {
    fn as_ref(&self) -> &Any {
        &Any
    }
}

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    let _: Any = (&order).into();
    Ok(order.amount)
}
