//! `self: &Self`. <https://github>.com/dtolnay/async-trait/issues/83 and 277

#![deny(warnings)]

use crate::props::*;

#[derive(Clone, Copy)]
pub struct Till(pub u64);

impl Till {
    #[idempotent(key = "order.id", name = "by_reference")]
    pub async fn by_reference(self: &Self, order: Order) -> Result<u64, Failure> {
        Ok(self.0 + order.amount)
    }

    #[idempotent(key = "order.id", name = "by_value")]
    pub async fn by_value(self: Self, order: Order) -> Result<u64, Failure> {
        Ok(self.0 + order.amount)
    }

    #[idempotent(key = "order.id", name = "rebound")]
    pub async fn rebound(mut self: &Self, order: Order) -> Result<u64, Failure> {
        if order.amount > self.0 {
            self = &Self(0);
        }
        Ok(self.0)
    }
}
