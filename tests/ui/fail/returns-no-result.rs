//! Returns no result.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Receipt {
    Receipt { id: order.id }
}

fn main() {}
