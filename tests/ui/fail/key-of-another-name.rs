//! The key under the name that another library has for it: said once.

use ui_tests::*;

#[idempotent(id = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
