//! An unused variable of the body still warns.

#![deny(warnings)]

use ui_tests::*;

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    let unused = 1;
    Ok(order.amount)
}

fn main() {}
