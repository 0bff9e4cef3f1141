//! No options.

use ui_tests::*;

#[idempotent]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
