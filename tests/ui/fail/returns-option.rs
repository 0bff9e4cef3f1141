//! Returns option.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Option<Receipt> {
    Some(Receipt { id: order.id })
}

fn main() {}
