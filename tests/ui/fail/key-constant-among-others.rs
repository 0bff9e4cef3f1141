//! Constants say nothing about a call.

use ui_tests::*;

#[idempotent(key = ("order.id", order.tenant.id, 5))]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
