//! Key return.

use ui_tests::*;

#[idempotent(key = { return Ok(1); })]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
