//! Option literal alone.

use ui_tests::*;

#[idempotent("order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
