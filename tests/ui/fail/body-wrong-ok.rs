//! <https://github>.com/rust-lang/rust/issues/71968

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok::<(), Failure>(())
}

fn main() {}
