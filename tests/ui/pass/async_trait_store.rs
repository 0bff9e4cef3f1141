//! `store` and a key expression use the receiver under `#[async_trait]`

#![deny(warnings)]

use crate::props::*;

use async_trait::async_trait;
use idempotent_runtime::Idempotency;

#[async_trait]
pub trait Payments {
    async fn charge(&mut self, order: Order) -> Result<u64, Failure>;
}

pub struct Till {
    pub idempotency: Idempotency,
    pub prefix: String,
    pub total: u64,
}

#[async_trait]
impl Payments for Till {
    #[idempotent(key = format!("{}{}", self.prefix, order.id), name = "charge", store = self.idempotency)]
    async fn charge(&mut self, order: Order) -> Result<u64, Failure> {
        self.total += order.amount;
        Ok(self.total)
    }
}
