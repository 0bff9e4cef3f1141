//! A stored result is owned.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: &Order) -> Result<&str, Failure> {
    Ok(&order.id)
}

fn main() {}
