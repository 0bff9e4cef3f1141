//! A hole is no hole of `format!`.

use ui_tests::*;

#[idempotent(key = "charge-{order.id:?}")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
