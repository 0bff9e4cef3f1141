//! Returns error without from.

use ui_tests::*;

#[derive(Debug)]
struct Own;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Own> {
    Ok(order.amount)
}

fn main() {}
