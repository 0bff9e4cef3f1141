//! Ttl overflow.

use ui_tests::*;

#[idempotent(key = "order.id", ttl = "99999999999999999999h")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
