//! Without an error there is nothing to decide about, and that is said once.

use ui_tests::*;

#[idempotent(key = "order.id", on_error = "replay")]
async fn charge(order: Order) -> Option<Receipt> {
    drop(order);
    None
}

#[idempotent(key = "order.id", on_error = |_| idempotent_runtime::Unstored::Retry)]
async fn refund(order: Order) -> Receipt {
    Receipt { id: order.id }
}

fn main() {}
