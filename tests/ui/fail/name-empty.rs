//! Name empty.

use ui_tests::*;

#[idempotent(key = "order.id", name = "")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
