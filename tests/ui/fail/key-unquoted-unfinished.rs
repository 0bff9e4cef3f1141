//! Key unquoted unfinished.

use ui_tests::*;

#[idempotent(key = order.)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
