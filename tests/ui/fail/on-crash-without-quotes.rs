//! A policy is text.

use ui_tests::*;

#[idempotent(key = "order.id", on_crash = retry)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
