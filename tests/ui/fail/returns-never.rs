//! Returns never.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> ! {
    loop {
        let _ = &order;
    }
}

fn main() {}
