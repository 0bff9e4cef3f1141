//! No suggestion is about code that the user cannot see. <https://github>.com/tokio-rs/axum/issues/1707

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    let taken = order;
    let amount = order.amount;
    drop(taken);
    Ok(amount)
}

fn main() {}
