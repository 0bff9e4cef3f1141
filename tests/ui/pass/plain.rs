//! The shape of every example.

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", ttl = "24h", skip(gateway))]
pub async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, Failure> {
    let amount = check(order.amount)?;
    gateway.charge(amount).await?;
    Ok(Receipt { id: order.id })
}

fn check(amount: u64) -> Result<u64, std::num::ParseIntError> {
    "1".parse::<u64>().map(|one| one + amount)
}

#[test]
fn compiles() {
    drop(charge(&Gateway, Order::new()));
}
