//! Nothing stored can be lent out.

use ui_tests::*;

type Reply<'a> = Result<&'a str, Failure>;

#[idempotent(key = "order.id", detached)]
async fn charge(order: &'static Order) -> Reply<'static> {
    Ok(&order.id)
}

fn main() {}
