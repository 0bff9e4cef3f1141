//! <https://github>.com/tokio-rs/tracing/issues/768

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    order.id
}

fn main() {}
