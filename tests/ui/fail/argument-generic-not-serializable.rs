//! A type parameter without a bound.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge<T>(order: Order, label: T) -> Result<u64, Failure> {
    drop(label);
    Ok(order.amount)
}

fn main() {}
