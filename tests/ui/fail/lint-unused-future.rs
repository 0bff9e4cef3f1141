//! A future that nobody awaits still warns.

#![deny(warnings)]

use ui_tests::*;

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

pub fn forgets() {
    charge(ui_tests::Order::new());
}

fn main() {}
