//! Stores that answer without waiting. A call to one needs no future that could be dropped half way, and so none of the
//! boxes in which such a future would be handed on.

use std::time::Duration;

use crate::key::RecordKey;
use crate::store::{OwnerToken, Reserve, Reserved, Settled, StoreResult, Write};

/// The two operations of every call, as [`Store`](crate::store::Store) has them.
pub trait Immediate {
    /// [`Store::reserve`](crate::store::Store::reserve).
    fn reserve(&self, request: &Reserve<'_>) -> StoreResult<Reserved>;

    /// [`Store::complete`](crate::store::Store::complete).
    fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write>;
}
