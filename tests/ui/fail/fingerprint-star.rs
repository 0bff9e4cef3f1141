//! `*` is for `key`.

use ui_tests::*;

#[idempotent(key = "order.id", fingerprint = "*")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
