#![allow(unused)]
use idempotent_runtime::{Reconciled, idempotent};
use ui_tests::*;

#[idempotent(key = "order.id", transaction = tx, reconcile = find(&order))]
async fn charge(tx: &mut Pool, order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
