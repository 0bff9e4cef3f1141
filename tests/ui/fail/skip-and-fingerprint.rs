//! Skip and fingerprint.

use ui_tests::*;

#[idempotent(key = "order.id", skip(order), fingerprint = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
