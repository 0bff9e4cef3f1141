//! Store await.

use ui_tests::*;

#[idempotent(key = "order.id", store = connect().await?)]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
