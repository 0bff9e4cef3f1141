//! The note is at the value that is held.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    let local = std::rc::Rc::new(order.amount);
    std::future::ready(()).await;
    Ok(*local)
}

fn is_send<T: Send>(_: T) {}

fn main() {
    is_send(charge(Order::new()));
}
