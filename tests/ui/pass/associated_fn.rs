//! An associated function without a receiver. <https://github>.com/tokio-rs/axum/issues/518

#![deny(warnings)]

use crate::props::*;

pub struct Till;

impl Till {
    #[idempotent(key = "order.id", name = "open")]
    pub async fn open(order: Order) -> Result<Receipt, Failure> {
        Ok(Receipt { id: order.id })
    }
}

#[test]
fn compiles() {
    drop(Till::open(Order::new()));
}
