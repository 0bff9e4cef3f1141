//! Store wrong type.

use ui_tests::*;

#[idempotent(key = "order.id", store = order.id.clone())]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
