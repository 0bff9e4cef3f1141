//! Names that other libraries use.

use ui_tests::*;

#[idempotent(key = "order.id", expires = "24h", timeout = "1s", exclude(order))]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
