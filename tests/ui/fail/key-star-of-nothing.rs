//! Key star of nothing.

use ui_tests::*;

#[idempotent(key = "*", skip(order))]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
