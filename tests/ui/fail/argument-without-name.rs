//! <https://github>.com/dtolnay/async-trait/issues/234

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(_: Gateway, order: Order, (_, _): (u32, u32)) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
