//! Key no such field.

use ui_tests::*;

#[idempotent(key = "order.idd")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
