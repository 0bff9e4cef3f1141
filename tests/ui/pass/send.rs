//! The future is `Send` where the plain one is

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", skip(gateway))]
pub async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, Failure> {
    gateway.charge(order.amount).await?;
    Ok(Receipt { id: order.id })
}

#[test]
fn compiles() {
    fn is_send<T: Send>(_: T) {}
    is_send(charge(&Gateway, Order::new()));
}
