//! A handle from an argument, the receiver, or a function. <https://github>.com/jaemk/cached

#![deny(warnings)]

use crate::props::*;

use idempotent_runtime::Idempotency;
use std::sync::Arc;

pub struct App {
    pub store: Idempotency,
    pub shared: Arc<Idempotency>,
}

fn global() -> &'static Idempotency {
    static HANDLE: std::sync::OnceLock<Idempotency> = std::sync::OnceLock::new();
    HANDLE.get_or_init(Idempotency::disabled)
}

impl App {
    #[idempotent(key = "order.id", store = self.store, name = "field")]
    pub async fn field(&self, order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }

    #[idempotent(key = "order.id", store = Arc::clone(&self.shared), name = "shared")]
    pub async fn shared(&self, order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }

    #[idempotent(key = "order.id", store = &app.store, skip(app), name = "argument")]
    pub async fn argument(app: &App, order: Order) -> Result<u64, Failure> {
        let _ = app;
        Ok(order.amount)
    }
}

#[idempotent(key = "order.id", store = global())]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
