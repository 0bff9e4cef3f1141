//! Attributes above and below ours stay, in their order. <https://github>.com/launchbadge/sqlx/issues/3122

#![deny(warnings)]

use crate::props::*;

#[inline]
#[idempotent(key = "order.id")]
#[cold]
#[doc(hidden)]
#[must_use]
#[allow(clippy::double_must_use)]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
