//! Skip text.

use ui_tests::*;

#[idempotent(key = "order.id", skip = "pool")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
