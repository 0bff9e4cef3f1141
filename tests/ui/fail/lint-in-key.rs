//! A lint about the expression of a key points at the expression.

#![deny(trivial_numeric_casts)]

use ui_tests::*;

#[idempotent(key = order.amount as u64)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
