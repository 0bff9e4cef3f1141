//! One mistake in the attribute is one message: the function can still be called.

use ui_tests::*;

#[idempotent(key = "order.id", tll = "24h")]
async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

async fn caller() -> Result<u64, Failure> {
    charge(Order::new()).await
}

fn main() {}
