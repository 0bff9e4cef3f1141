//! Returns nothing.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) {
    drop(order);
}

fn main() {}
