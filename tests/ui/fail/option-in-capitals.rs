//! Options in capitals.

use ui_tests::*;

#[idempotent(key = "order.id", TTL = "1h", On_Error = "retry")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
