//! An argument alone.

use ui_tests::*;

#[idempotent(order)]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
