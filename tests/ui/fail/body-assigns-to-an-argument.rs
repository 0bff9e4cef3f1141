//! An argument that may not be changed is called by its name.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    order.amount += 1;
    Ok(order.amount)
}

#[idempotent(key = "order.id")]
async fn charge_behind(order: &Order) -> Result<u64, Failure> {
    order.amount += 1;
    Ok(order.amount)
}

fn main() {}
