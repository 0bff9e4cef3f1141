//! The body owns all that it uses

#![deny(warnings)]

use crate::props::*;

use std::sync::Arc;

pub struct App;

impl App {
    #[idempotent(key = "order.id", detached, name = "method", on_error = decide)]
    pub async fn method(self: Arc<Self>, order: Order, label: &'static str) -> Result<u64, Failure> {
        Gateway.charge(order.amount).await?;
        let _ = (&self, label);
        Ok(order.amount)
    }
}

fn decide(_: &Failure) -> idempotent_runtime::OnError {
    idempotent_runtime::OnError::Retry
}

#[idempotent(detached, key = "order.id", skip(callback))]
pub async fn function<T>(order: Order, callback: T) -> Result<u64, Failure>
where
    T: Fn(u64) + Send + 'static,
{
    callback(order.amount);
    Ok(order.amount)
}
