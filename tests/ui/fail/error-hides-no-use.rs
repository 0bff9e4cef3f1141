//! A mistake hides the use of an argument, and nothing is said of that.

#![deny(unused)]

use ui_tests::*;

#[idempotent(key = "id", tttl = "1h")]
pub async fn charge(id: u32, order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
