//! Key not serializable.

use ui_tests::*;

#[idempotent(key = "gateway")]
async fn charge(gateway: Gateway) -> Result<u64, Failure> {
    drop(gateway);
    Ok(1)
}

fn main() {}
