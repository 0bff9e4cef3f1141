//! Generated names are out of reach.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(__idempotent_running);
    drop(__IDEMPOTENT_SITE);
    Ok(order.amount)
}

fn main() {}
