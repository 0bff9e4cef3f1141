//! A boxed future that is made in another way.

use ui_tests::*;

use std::future::Future;
use std::pin::Pin;

#[idempotent(key = "order.id")]
fn charge(order: Order) -> Pin<Box<dyn Future<Output = Result<u64, Failure>>>> {
    Box::pin(inner(order))
}

async fn inner(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
