//! `#[async_trait]` on the impl has rewritten the method before ours expands. <https://github>.com/tokio-rs/tracing/issues/399 and 711

#![deny(warnings)]

use crate::props::*;

use async_trait::async_trait;

#[async_trait]
pub trait Payments {
    async fn charge(&self, order: Order, note: &str) -> Result<Receipt, Failure>;
    async fn refund(&mut self, mut order: Order) -> Result<Receipt, Failure>;
}

pub struct Till {
    pub tenant: Tenant,
}

#[async_trait]
impl Payments for Till {
    #[idempotent(key = "self.tenant.id, order.id", name = "charge")]
    async fn charge(&self, order: Order, note: &str) -> Result<Receipt, Failure> {
        Gateway.charge(order.amount).await?;
        let id = format!("{}{}{note}", self.tenant.id, order.id);
        Ok(Receipt { id })
    }

    #[idempotent(key = (self.tenant.id, order.id), name = "refund")]
    async fn refund(&mut self, mut order: Order) -> Result<Receipt, Failure> {
        self.tenant.id += 1;
        order.amount = 0;
        Ok(Receipt { id: order.id })
    }
}
