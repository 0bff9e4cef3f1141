//! The contract between the protocol of a call in the caller's transaction and a database that can carry it.

use std::time::Duration;

use async_trait::async_trait;

use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{Grant, OwnerToken, Record, Settled, State, StoreError, StoreResult, TakeOver};

/// What a call asks of its transaction before its body.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// How many calls there are around this one; savepoints are named after it.
    pub(crate) level: usize,
    pub(crate) key: &'a RecordKey,
    pub(crate) owner: OwnerToken,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) unknown_ttl: Duration,
    /// How long another transaction may be waited for.
    pub(crate) wait: Duration,
    pub(crate) take_over: TakeOver,
    pub(crate) max_attempts: u32,
}

impl Entry<'_> {
    /// The name of the savepoint around the call.
    pub(crate) fn call_point(&self) -> String {
        format!("idempotent_call_{}", self.level)
    }

    /// The name of the savepoint around the body.
    pub(crate) fn body_point(&self) -> String {
        format!("idempotent_body_{}", self.level)
    }

    /// Whether the policy allows an attempt after that of `record`. Never after steps: a body in a transaction has none, so
    /// it would do again what they have done.
    pub(crate) fn may_follow(&self, record: &Record) -> bool {
        let State::Running { lease_left, effects_begun } = record.state else { return false };
        lease_left.is_zero()
            && record.fingerprint == self.fingerprint
            && record.steps.is_empty()
            && self.take_over.allows(effects_begun, &[])
    }
}

/// What stands under the key.
#[derive(Debug)]
pub enum Entered {
    /// The call's own record; the body may run, inside a savepoint.
    Granted(Grant),
    /// Somebody else's. Nothing was written.
    Held {
        /// It.
        record: Record,
        /// Whether this transaction would see it change.
        sees_changes: bool,
    },
}

/// Why a transaction did not do what it was asked.
#[derive(Debug)]
pub enum Trouble {
    /// There is no transaction.
    NotOpen,
    /// The transaction that the call had begun in is not there any more.
    Ended,
    /// The database has rolled the transaction back, so nothing of the call is left; another one may succeed.
    RolledBack(StoreError),
    /// There is no table of records in this database.
    NoTable(StoreError),
    /// Another transaction had the record for longer than the call may wait.
    Busy,
    /// Nothing of this transaction can be committed, and another one may succeed: a serialization failure, a deadlock.
    Contended(StoreError),
    /// The database's own error.
    Store(StoreError),
}

/// A connection inside the caller's transaction, and the statements for the store's table.
///
/// Every operation leaves the transaction usable whenever the database allows.
#[async_trait]
pub trait Link: Send {
    /// Reserves the key and opens a savepoint for the body, or shows the record in the way.
    async fn enter(&mut self, entry: &Entry<'_>) -> Result<Entered, Trouble>;

    /// Settles the record of the call, which is the `attempt`th, after undoing what the body wrote if `undo` says so.
    async fn settle(
        &mut self,
        entry: &Entry<'_>,
        attempt: u32,
        settled: &Settled,
        keep: Duration,
        undo: bool,
    ) -> Result<(), Trouble>;

    /// Undoes the call, which is the `attempt`th: what its body wrote, and its record.
    async fn undo(&mut self, entry: &Entry<'_>, attempt: u32) -> Result<(), Trouble>;

    /// Makes the table where it is missing, if the store may, on a connection of the store's own.
    async fn make_table(&mut self) -> StoreResult<()>;
}
