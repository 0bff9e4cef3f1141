//! Returns borrowed under an alias.

use ui_tests::*;

type Reply<'a> = Result<&'a str, Failure>;

#[idempotent(key = "order.id")]
async fn charge(order: &Order) -> Reply<'_> {
    Ok(&order.id)
}

fn main() {}
