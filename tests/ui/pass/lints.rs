//! Every group of lints that users turn on

#![deny(warnings)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::cargo)]
#![deny(
    unreachable_code,
    clippy::used_underscore_binding,
    clippy::let_underscore_untyped,
    clippy::let_underscore_must_use
)]
#![deny(
    clippy::future_not_send,
    clippy::manual_async_fn,
    clippy::large_futures,
    clippy::let_unit_value,
    clippy::unused_unit
)]

use crate::props::{Failure, Gateway, Order, idempotent};

/// # Errors
/// Those of the gateway.
#[idempotent(key = "order.id, _tenant", skip(gateway), on_error = "replay", lease = "30s")]
pub async fn charge(gateway: &Gateway, mut order: Order, _tenant: u32) -> Result<(), Failure> {
    order.amount += 1;
    gateway.charge(order.amount).await
}
