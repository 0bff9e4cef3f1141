//! Closures of the body keep what they infer. <https://github>.com/tokio-rs/tracing/issues/2796 and 2857

#![deny(warnings)]

use crate::props::*;

#[idempotent(
    key = "orders",
    ttl = "1h",
    lease = "10s",
    wait = "1s",
    on_error = "replay",
    on_crash = "retry",
    version = 2,
    name = "sum"
)]
pub async fn sum(orders: Vec<Order>) -> Result<u64, Failure> {
    let twice = |order: &Order| order.amount * 2;
    fn adder(by: u64) -> impl Fn(u64) -> u64 {
        move |value| value + by
    }
    let add = adder(1);
    let mut amounts = orders.iter().map(twice).map(add).collect::<Vec<_>>();
    amounts.sort_by(|left, right| right.cmp(left));
    Ok(amounts.into_iter().sum())
}
