//! A `mut` that nothing needs still warns, once.

#![deny(warnings)]

use ui_tests::*;

#[idempotent(key = "order.id")]
pub async fn charge(mut order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
