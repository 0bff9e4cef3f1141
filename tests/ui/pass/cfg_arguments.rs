//! Arguments that are there under some configurations only

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "order.id", skip(pool))]
pub async fn charge(
    order: Order,
    #[cfg(debug_assertions)] pool: Pool,
    #[cfg(not(debug_assertions))] pool: Gateway,
    #[cfg(any())] never: NotThere,
    #[cfg(any(unix, windows))] always: u32,
) -> Result<u64, Failure> {
    drop(pool);
    Ok(order.amount + u64::from(always))
}
