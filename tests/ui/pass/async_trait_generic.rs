//! Methods with parameters and lifetimes of their own, provided methods, and functions without a receiver.

#![deny(warnings)]

use async_trait::async_trait;

use crate::props::*;

#[async_trait]
pub trait Charge<T: Serialize + Send + Sync + 'static> {
    async fn charge<'a, U>(&'a self, order: &'a T, hidden: &'a U) -> Result<u64, Failure>
    where
        U: Send + Sync + 'a;

    #[idempotent(name = "async-trait/provided", key = "id")]
    async fn provided(&self, id: u64) -> Result<u64, Failure> {
        Ok(id)
    }

    #[idempotent(name = "async-trait/fixed", key = "id")]
    async fn fixed(id: u64) -> Result<u64, Failure>
    where
        Self: Sized,
    {
        Ok(id)
    }
}

pub struct Service {
    pub tenant: String,
}

#[async_trait]
impl<T: Serialize + Send + Sync + 'static> Charge<T> for Service {
    #[idempotent(name = "async-trait/charge", key = (self.tenant.as_str(), order), skip(hidden))]
    async fn charge<'a, U>(&'a self, order: &'a T, hidden: &'a U) -> Result<u64, Failure>
    where
        U: Send + Sync + 'a,
    {
        let _ = (order, hidden);
        Ok(1)
    }
}
