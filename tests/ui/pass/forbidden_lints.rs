//! Lints that may not be allowed again.

#![forbid(unsafe_code, unused, unreachable_code, missing_docs)]
#![forbid(clippy::all, clippy::pedantic, clippy::nursery)]

use crate::props::{Failure, Order, Pool, idempotent};

/// Charges.
///
/// # Errors
/// Those of the gateway.
#[idempotent(key = "order.id", skip(pool), on_error = "refuse", ttl = "1w")]
pub async fn charge(pool: &Pool, mut order: Order, note: &str) -> Result<u64, Failure> {
    let _ = (pool, note);
    order.amount += 1;
    std::future::ready(()).await;
    Ok(order.amount)
}

/// Charges, on a task.
///
/// # Errors
/// Those of the gateway.
#[idempotent(key = (order.id, order.amount.to_string()), on_error = "replay", detached)]
pub async fn charge_later(order: Order) -> Result<(), Failure> {
    std::future::ready(order).await;
    Ok(())
}
