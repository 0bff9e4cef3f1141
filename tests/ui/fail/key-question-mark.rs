//! Key question mark.

use ui_tests::*;

#[idempotent(key = order.id.parse::<u64>()?)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
