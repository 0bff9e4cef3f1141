//! Key template without hole.

use ui_tests::*;

#[idempotent(key = "charge-{{}}")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
