//! <https://github>.com/tokio-rs/tokio/issues/6930

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) {
    order.id.parse::<u64>()?;
}

fn main() {}
