//! What is stored is not static when it is read back.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<Vec<&'static str>, Failure> {
    drop(order);
    Ok(vec!["paid"])
}

fn main() {}
