//! Each option that a transaction excludes is one mistake.

use ui_tests::*;

#[idempotent(key = "order.id", transaction = tx, detached, lease = "30s", on_crash = "retry", reconcile = find())]
async fn charge(tx: &mut Pool, order: Order) -> Result<u64, Failure> {
    let _ = tx;
    Ok(order.amount)
}

fn main() {}
