//! Reconcile moves an argument.

use ui_tests::*;

#[idempotent(key = "order.id", reconcile = find(order))]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

async fn find(order: Order) -> Result<idempotent_runtime::Reconciled<u64>, Failure> {
    Ok(idempotent_runtime::Reconciled::Done(order.amount))
}

fn main() {}
