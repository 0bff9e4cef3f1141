//! Option unknown.

use ui_tests::*;

#[idempotent(key = "order.id", tttl = "24h")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
