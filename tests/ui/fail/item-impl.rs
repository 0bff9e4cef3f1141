//! An impl block, where the methods are meant. <https://github>.com/jaemk/cached/issues/140

use ui_tests::*;

struct Till;

#[idempotent(key = "order.id")]
impl Till {
    async fn charge(&self, order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
}

fn main() {}
