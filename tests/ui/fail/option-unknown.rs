//! Option unknown.

use ui_tests::*;

#[idempotent(key = "order.id", tttl = "24h")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
