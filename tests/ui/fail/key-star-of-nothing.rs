//! Key star of nothing.

use ui_tests::*;

#[idempotent(key = "*", skip(order))]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
