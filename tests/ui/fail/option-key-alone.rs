//! What is meant for the key.

use ui_tests::*;

#[idempotent("order.id")]
async fn quoted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(order.id, ttl = "0s")]
async fn bare(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
