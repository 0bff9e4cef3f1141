//! Associated types and `impl Future` in traits

#![deny(warnings)]

use crate::props::*;

use std::future::Future;

pub trait Payments {
    type Answer;
    fn charge(&self, order: Order) -> impl Future<Output = Self::Answer> + Send;
}

impl Payments for Gateway {
    type Answer = Result<u64, Failure>;

    #[idempotent(key = "order.id", name = "charge")]
    async fn charge(&self, order: Order) -> Self::Answer {
        Ok(order.amount)
    }
}
