//! Lint levels on the function govern the body. <https://github>.com/elastio/bon/issues/125

#![deny(warnings)]

use crate::props::*;

#[allow(unused_variables, clippy::let_unit_value)]
#[idempotent(key = "order.id")]
pub async fn allowed(order: Order) -> Result<u64, Failure> {
    let unused = ();
    Ok(order.amount)
}

#[expect(unused_variables)]
#[idempotent(key = "order.id", name = "expected")]
pub async fn expected(order: Order) -> Result<u64, Failure> {
    let unused = 1;
    Ok(order.amount)
}
