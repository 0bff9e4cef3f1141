//! Option unlike any.

use ui_tests::*;

#[idempotent(key = "order.id", banana = 1)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
