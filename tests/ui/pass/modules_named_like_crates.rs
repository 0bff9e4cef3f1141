//! Modules called `core`, `std`, `serde` … <https://github>.com/tokio-rs/tracing/issues/2761 and 2762

#![deny(warnings)]

use crate::props::{Failure, Order, idempotent};

pub mod core {}
pub mod std {}
pub mod alloc {}
pub mod serde {}
pub mod idempotent_runtime {}

#[idempotent(key = "order.id", on_crash = "refuse")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
