//! `mut self` keeps its `mut`. <https://github>.com/dtolnay/async-trait/issues/23

#![deny(warnings)]

use crate::props::*;

pub struct Till(pub u64);

impl Till {
    #[idempotent(key = "order.id", name = "add")]
    pub async fn add(mut self, order: Order) -> Result<u64, Failure> {
        self.0 += order.amount;
        Ok(self.0)
    }
}

#[test]
fn compiles() {
    drop(Till(1).add(Order::new()));
}
