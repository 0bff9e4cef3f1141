//! On missing key unknown.

use ui_tests::*;

#[idempotent(key = "order.id", on_missing_key = refuse)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
