//! Name reserved.

use ui_tests::*;

#[idempotent(key = "order.id", name = "__idempotent_charge")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
