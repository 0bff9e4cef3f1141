//! The compiler blames the type. <https://github>.com/dtolnay/async-trait/issues/31

use ui_tests::*;

struct View<'a>(&'a str);

#[idempotent(key = "order.id", skip(view))]
async fn charge(order: Order, view: View) -> Result<u64, Failure> {
    let _ = view.0;
    Ok(order.amount)
}

fn main() {}
