//! <https://github>.com/dtolnay/async-trait/issues/204

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order, label: impl std::fmt::Display) -> Result<String, Failure> {
    Ok(format!("{label}{}", order.amount))
}

fn main() {}
