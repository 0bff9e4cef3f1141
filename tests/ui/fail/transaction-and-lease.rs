//! A transaction is its own lease, ends with its caller, and runs in it.

use ui_tests::*;

#[idempotent(key = "order.id", transaction = tx, lease = "30s", on_crash = "retry", detached)]
async fn charge(tx: &mut String, order: Order) -> Result<u64, Failure> {
    let _ = tx;
    Ok(order.amount)
}

fn main() {}
