//! Key no such argument.

use ui_tests::*;

#[idempotent(key = "customer.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
