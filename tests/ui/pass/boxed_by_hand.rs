//! The boxed shape, written by hand

#![deny(warnings)]

use crate::props::*;

use std::future::Future;
use std::pin::Pin;

type Answer = Result<u64, Failure>;

#[idempotent(key = "order.id")]
pub fn charge(order: &Order) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
    Box::pin(async move {
        std::future::ready(()).await;
        Ok(order.amount)
    })
}
