//! The compiler alone reports it, once. <https://github>.com/rust-lang/rust/issues/54801

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(
    /// The order.
    order: Order,
) -> Result<u64, Failure> {
    Ok(order.amount)
}

fn main() {}
