//! The argument is a connection to a database.

use ui_tests::*;

#[idempotent(key = "order.id", transaction = tx)]
async fn charge(tx: &mut String, order: Order) -> Result<u64, Failure> {
    let _ = tx;
    Ok(order.amount)
}

fn main() {}
