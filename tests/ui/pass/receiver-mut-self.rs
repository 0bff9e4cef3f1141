//! `mut self` keeps its `mut`. https://github.com/dtolnay/async-trait/issues/23

#![deny(warnings)]

use ui_tests::*;

struct Till(u64);

impl Till {
    #[idempotent(key = "order.id", name = "add")]
    async fn add(mut self, order: Order) -> Result<u64, Failure> {
        self.0 += order.amount;
        Ok(self.0)
    }
}

fn main() {
    drop(Till(1).add(Order::new()));
}
