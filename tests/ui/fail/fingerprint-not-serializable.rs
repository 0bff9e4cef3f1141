//! Fingerprint not serializable.

use ui_tests::*;

#[idempotent(key = "order.id", fingerprint = "gateway")]
async fn charge(order: Order, gateway: Gateway) -> Result<u64, Failure> {
    drop((order, gateway));
    Ok(1)
}

fn main() {}
