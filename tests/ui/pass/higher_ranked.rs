//! The future is `Send` for every lifetime. <https://github>.com/rust-lang/rust/issues/102211

#![deny(warnings)]

use crate::props::*;

use std::future::Future;
use std::pin::Pin;

pub type Boxed<'a> = Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send + 'a>>;

#[idempotent(key = "order.id")]
pub async fn charge(order: &Order) -> Result<u64, Failure> {
    std::future::ready(()).await;
    Ok(order.amount)
}

#[test]
fn compiles() {
    fn register(_: impl for<'a> Fn(&'a Order) -> Boxed<'a>) {}
    register(|order| Box::pin(charge(order)));
}
