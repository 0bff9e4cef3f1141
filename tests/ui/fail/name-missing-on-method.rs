//! Name missing on method.

use ui_tests::*;

struct Till;

impl Till {
    #[idempotent(key = "order.id")]
    async fn charge(&self, order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
}

fn main() {}
