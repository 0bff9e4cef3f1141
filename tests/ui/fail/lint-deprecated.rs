//! Callers of a deprecated function are warned, the expansion is not.

#![deny(warnings)]

use ui_tests::*;

#[deprecated(note = "use `pay`")]
#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

pub async fn caller() -> Result<u64, Failure> {
    charge(Order::new()).await
}

fn main() {}
