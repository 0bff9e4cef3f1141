//! Key index in quotes.

use ui_tests::*;

#[idempotent(key = "orders[0].id")]
async fn charge(orders: Vec<Order>) -> Result<u64, Failure> {
    drop(orders);
    Ok(1)
}

fn main() {}
