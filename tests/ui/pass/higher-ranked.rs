//! The future is `Send` for every lifetime. https://github.com/rust-lang/rust/issues/102211

#![deny(warnings)]

use ui_tests::*;

use std::future::Future;
use std::pin::Pin;

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send + 'a>>;

#[idempotent(key = "order.id")]
async fn charge(order: &Order) -> Result<u64, Failure> {
    std::future::ready(()).await;
    Ok(order.amount)
}

fn register(_: impl for<'a> Fn(&'a Order) -> Boxed<'a>) {}

fn main() {
    register(|order| Box::pin(charge(order)));
}
