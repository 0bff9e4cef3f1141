//! Returns not serializable.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<Pool, Failure> {
    drop(order);
    Ok(Pool)
}

fn main() {}
