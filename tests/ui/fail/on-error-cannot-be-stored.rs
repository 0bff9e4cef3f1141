//! An error that may be replayed must be serializable.

use ui_tests::*;

struct Opaque;

impl From<idempotent_runtime::Error> for Opaque {
    fn from(_: idempotent_runtime::Error) -> Self {
        Self
    }
}

#[idempotent(key = "order.id", on_error = "replay")]
async fn charge(order: Order) -> Result<u64, Opaque> {
    Ok(order.amount)
}

#[idempotent(key = "order.id", on_error = |_| idempotent_runtime::OnError::Replay)]
async fn refund(order: Order) -> Result<u64, Opaque> {
    Ok(order.amount)
}

fn main() {}
