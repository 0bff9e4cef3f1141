//! As above, where `#[async_trait]` has given it a name of its own.

use ui_tests::*;

#[async_trait::async_trait]
trait Payments {
    async fn charge(&self, _: Gateway, order: Order) -> Result<u64, Failure>;
}

#[async_trait::async_trait]
impl Payments for Pool {
    #[idempotent(key = "order.id", name = "charge")]
    async fn charge(&self, _: Gateway, order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
}

fn main() {}
