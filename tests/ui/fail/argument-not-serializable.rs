//! The message is at the type of the argument.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(gateway: Gateway, order: Order, pool: &Pool, list: Vec<State<u32>>) -> Result<u64, Failure> {
    let _ = (gateway, pool, list);
    Ok(order.amount)
}

fn main() {}
