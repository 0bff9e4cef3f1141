//! `async fn` in traits without any crate. <https://github>.com/tokio-rs/tracing/issues/3598

#![deny(warnings)]

use crate::props::*;

#[allow(async_fn_in_trait)]
pub trait Payments {
    async fn charge(&self, order: Order) -> Result<u64, Failure>;

    #[idempotent(key = "order.id", name = "refund")]
    async fn refund(&self, order: Order) -> Result<u64, Failure> {
        self.charge(order).await
    }
}

impl Payments for Gateway {
    #[idempotent(key = "order.id", name = "charge")]
    async fn charge(&self, order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
}
