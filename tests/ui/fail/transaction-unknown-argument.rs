//! The transaction is an argument.

use ui_tests::*;

#[idempotent(key = "order.id", transaction = tz)]
async fn charge(tx: &mut String, order: Order) -> Result<u64, Failure> {
    let _ = tx;
    Ok(order.amount)
}

#[idempotent(key = "order.id", transaction = 5)]
async fn ship(tx: &mut String, order: Order) -> Result<u64, Failure> {
    let _ = tx;
    Ok(order.amount)
}

fn main() {}
