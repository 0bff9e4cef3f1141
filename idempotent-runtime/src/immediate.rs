//! Stores that answer without waiting. A call to one needs no future that could be dropped half way, and so none of the
//! boxes in which such a future would be handed on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::idempotency::Core;
use crate::key::RecordKey;
use crate::meters::StoreCall;
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

/// What the store of `core` answers at once. `None`: it is none that does, or it panicked, which is an answer that did not
/// come. Then it is asked as every other store is, as often as that takes.
pub(crate) fn at_once<T>(
    core: &Core,
    operation: &'static str,
    ask: impl FnOnce(&dyn Immediate) -> StoreResult<T>,
) -> Option<StoreResult<T>> {
    let store = core.store.as_deref()?.immediate()?;
    let asked = StoreCall::begin(operation);
    let answer = catch_unwind(AssertUnwindSafe(|| ask(store))).ok()?;
    asked.answered(&answer);
    Some(answer)
}
