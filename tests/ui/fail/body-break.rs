//! `break` stays inside the body.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    break;
}

fn main() {}
