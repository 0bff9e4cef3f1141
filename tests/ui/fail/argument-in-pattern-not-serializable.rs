//! The message is at the name that the pattern binds.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(State(pool): State<Pool>, Json(order): Json<Order>) -> Result<u64, Failure> {
    drop(pool);
    Ok(order.amount)
}

fn main() {}
