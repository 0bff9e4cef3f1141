//! Expressions over the arguments

#![deny(warnings)]
#![allow(clippy::as_conversions, clippy::cast_possible_truncation, clippy::indexing_slicing)]

use crate::props::*;

fn request_id() -> String {
    String::new()
}

#[idempotent(key = order.id)]
pub async fn field(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = format!("{}-{}", order.id, order.tenant.id))]
pub async fn formatted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = orders[0].id)]
pub async fn index(orders: Vec<Order>) -> Result<usize, Failure> {
    Ok(orders.len())
}

#[idempotent(key = order.amount + 1)]
pub async fn sum(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = -amount)]
pub async fn negative(amount: i32) -> Result<i32, Failure> {
    Ok(amount)
}

#[idempotent(key = if by_tenant { order.tenant.id.to_string() } else { order.id.clone() })]
pub async fn chosen(order: Order, by_tenant: bool) -> Result<bool, Failure> {
    let _ = order;
    Ok(by_tenant)
}

#[idempotent(key = order.amount as u8)]
pub async fn cast(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = request_id())]
pub async fn from_elsewhere(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = { let id = &order.id; id.len() })]
pub async fn block(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
