//! Body wrong early return.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    if order.amount == 0 {
        return 0;
    }
    Ok(order.amount)
}

fn main() {}
