//! Several values, each in quotes of its own.

use ui_tests::*;

#[idempotent(key = "order.tenant.id", "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
