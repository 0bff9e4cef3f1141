//! An error that does not convert.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    let rate: f64 = order.id.parse()?;
    let _ = rate;
    Ok(order.amount)
}

fn main() {}
