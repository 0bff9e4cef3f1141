//! Key star and more.

use ui_tests::*;

#[idempotent(key = "*, order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
