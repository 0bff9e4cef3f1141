//! What the body keeps must be `Send`.

use ui_tests::*;

#[idempotent(key = "order.id", detached)]
async fn charge(order: Order) -> Result<u64, Failure> {
    let local = std::rc::Rc::new(order.amount);
    std::future::ready(()).await;
    Ok(*local)
}

fn main() {}
