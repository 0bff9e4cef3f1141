//! A method that a trait only declares. <https://github>.com/tokio-rs/tracing/issues/3179

use ui_tests::*;

trait Payments {
    #[idempotent(key = "order.id", name = "charge")]
    async fn charge(&self, order: Order) -> Result<u64, Failure>;
}

fn main() {}
