//! A function that is not `async` is one mistake at `fn`.

use ui_tests::*;

#[idempotent(key = "order.id")]
fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
