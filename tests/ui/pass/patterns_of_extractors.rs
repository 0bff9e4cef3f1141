//! Arguments as web frameworks write them. <https://github>.com/tokio-rs/tracing/pull/397

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", skip(pool))]
pub async fn create(State(pool): State<Pool>, Json(order): Json<Order>) -> Result<Receipt, Failure> {
    drop(pool);
    Ok(Receipt { id: order.id })
}
