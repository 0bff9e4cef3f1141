//! Looking at records, and settling by hand what no call will settle.
//!
//! Every change is a compare-and-set with the token that was seen: a record that has changed since is left alone, and
//! shown as it is now. It is asked for as in a call: within the handle's `store_timeout`, and again, with the same token, where no
//! answer came. Lists and purges take as long as the store does.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::asking::ask;
use crate::error::Error;
use crate::idempotency::{Core, Idempotency};
use crate::key::{OperationName, RecordKey};
use crate::operation::{Operation, OperationCall};
use crate::store::{
    Compared, ListQuery, OwnerToken, Page, Record, Resolution, Settled, State, Store, StoreError,
    StoreErrorKind, StoreResult, Stored,
};

impl Idempotency {
    /// The record of `key`; `None` when there is none, or it has expired.
    ///
    /// `key` is the whole text that the store keeps, as [`list`](Self::list) shows it, or the
    /// [`record_key`](OperationCall::record_key) of a call.
    ///
    /// # Errors
    /// The store's own.
    pub async fn inspect(&self, key: impl Into<Arc<str>>) -> StoreResult<Option<Record>> {
        let core = self.repaired()?;
        let key = RecordKey::new("", key.into());
        ask(core, "load", core.settings.store_timeout, |store| store.load(&key)).await
    }

    /// Shows records by operation and state, a page at a time. It may read the whole store; no call does.
    ///
    /// # Errors
    /// The store's own.
    pub async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.store_to_repair()?.list(query).await
    }

    /// Settles a record that is unknown, not retained, or running with its lease over, as having **not** happened: the
    /// next call with its key runs. Finished steps stay.
    ///
    /// Only somebody who has looked on the other side of the effect can know that.
    ///
    /// A record without finished steps is deleted by it. If the answer to that was lost, it cannot be told from one that
    /// somebody else has deleted: [`Compared::Differs`] with nothing there.
    ///
    /// # Errors
    /// The store's own.
    pub async fn resolve_not_done(&self, record: &Record) -> StoreResult<Compared> {
        self.resolve(record, &Resolution::NotDone).await
    }

    /// Deletes a record that is not live: the next call with its key runs as if there had never been one.
    ///
    /// A record that was seen open (running with its lease over, unknown, or not retained) is only deleted while it is open:
    /// the result of a late owner, which still has the token that was seen, is not lost by it.
    ///
    /// # Errors
    /// The store's own.
    pub async fn forget(&self, record: &Record) -> StoreResult<Compared> {
        let core = self.repaired()?;
        let forget = async |seen| {
            ask(core, "forget", core.settings.store_timeout, |store| store.forget(&record.key, seen)).await
        };
        if matches!(record.state, State::Settled(Settled::Completed(_) | Settled::Failed(_))) {
            return forget(record.owner).await;
        }
        // Nothing but an open record is resolved as not done, and only finished steps are left of it then.
        let replacement = OwnerToken::random();
        match self.resolve_as(record, replacement, &Resolution::NotDone).await? {
            Compared::Changed => match forget(replacement).await? {
                Compared::Differs(None) => Ok(Compared::Changed),
                compared => Ok(compared),
            },
            differs @ Compared::Differs(_) => Ok(differs),
        }
    }

    /// Deletes at most `limit` expired records, and says how many it deleted.
    ///
    /// Correctness never rests on it: an expired record is an absent one. Stores whose server deletes by itself say 0.
    ///
    /// # Errors
    /// The store's own.
    pub async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.store_to_repair()?.purge(limit).await
    }

    pub(crate) async fn resolve(&self, record: &Record, resolution: &Resolution) -> StoreResult<Compared> {
        self.resolve_as(record, OwnerToken::random(), resolution).await
    }

    async fn resolve_as(
        &self,
        record: &Record,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let core = self.repaired()?;
        ask(core, "resolve", core.settings.store_timeout, |store| {
            store.resolve(&record.key, record.owner, replacement, resolution)
        })
        .await
    }

    fn repaired(&self) -> StoreResult<&Core> {
        self.store_to_repair().map(|_| &**self.core())
    }

    fn store_to_repair(&self) -> StoreResult<&dyn Store> {
        let disabled = || StoreError::new("disabled", StoreErrorKind::Refused, "the handle is disabled");
        self.core().store.as_deref().ok_or_else(disabled)
    }
}

impl<P> Operation<P> {
    /// Settles a record of this operation as having happened, with this result: duplicates are given it, for the
    /// operation's ttl from now, as a result of the operation's version.
    ///
    /// For a record that is unknown, not retained, or running with its lease over.
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency, stores::MemoryStore, store::{Compared, ListQuery}};
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let charge = idempotency.operation("charge").refuse_after_errors();
    /// # let _ = charge.key("order-1").run(|_| async { Err::<u32, _>(Error::NoAttempt) }).await;
    /// let stuck = idempotency.list(&ListQuery { stuck: true, ..ListQuery::default() }).await?;
    /// for record in &stuck.records {
    ///     // …ask the gateway what happened to this order…
    ///     assert_eq!(charge.resolve_done(record, &4711).await?, Compared::Changed);
    /// }
    /// let receipt = charge.key("order-1").run(|_| async { Ok::<u32, Error>(0) }).await?;
    /// assert_eq!(receipt, 4711);
    /// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Error::Store`], and [`Error::Argument`] when the result cannot be serialized or encoded.
    pub async fn resolve_done<T: Serialize + ?Sized>(
        &self,
        record: &Record,
        result: &T,
    ) -> Result<Compared, Error> {
        let operation = record.key.operation();
        let cannot = |reason: String| Error::Argument {
            operation: operation.clone(),
            argument: "result".into(),
            reason: reason.into(),
        };
        let plain = serde_json::to_vec(result).map_err(|error| cannot(error.to_string()))?;
        let settings = &self.handle().core().settings;
        let bytes = match &settings.codec {
            Some(codec) => codec.encode(&record.key, plain).map_err(|error| cannot(error.to_string()))?,
            None => plain,
        };
        let (version, keep) = self.kept();
        let settled = Settled::Completed(Stored { version, bytes: bytes.into() });
        self.settle(record, operation, settled, keep.unwrap_or(settings.ttl)).await
    }

    async fn settle(
        &self,
        record: &Record,
        operation: &OperationName,
        settled: Settled,
        keep: Duration,
    ) -> Result<Compared, Error> {
        let resolved = self.handle().resolve(record, &Resolution::Done { settled, keep }).await;
        resolved.map_err(|source| Error::Store { operation: operation.clone(), source: Arc::new(source) })
    }
}

impl<P> OperationCall<P> {
    /// The key under which the store keeps this call's record.
    ///
    /// # Errors
    /// Those that the call itself would have: of a missing key, or a part that cannot be serialized.
    pub fn record_key(self) -> Result<RecordKey, Error> {
        self.into_prepared().record_key()
    }
}
