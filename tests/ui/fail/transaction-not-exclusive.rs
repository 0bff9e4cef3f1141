//! The caller commits, so the transaction is only lent.

use ui_tests::*;

#[idempotent(key = "order.id", transaction = tx)]
async fn charge(tx: String, order: Order) -> Result<u64, Failure> {
    drop(tx);
    Ok(order.amount)
}

fn main() {}
