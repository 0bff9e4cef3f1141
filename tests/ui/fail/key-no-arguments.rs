//! Key no arguments.

use ui_tests::*;

#[idempotent(key = "customer.id")]
async fn charge() -> Result<u64, Failure> {
    Ok(1)
}

fn main() {}
