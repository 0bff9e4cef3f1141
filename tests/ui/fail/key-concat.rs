//! `concat!` looks like a selector, and is none. <https://github>.com/dtolnay/macro-string/pull/25

use ui_tests::*;

#[idempotent(key = concat!("order", ".id"))]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
