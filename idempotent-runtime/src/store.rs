//! The contract between the protocol and the place where records are kept.
//!
//! A store knows nothing of functions, policies or results: it keeps one [`Record`] per [`RecordKey`] and changes it
//! by eleven operations, **each of them atomic and each one round trip**. Whoever implements [`Store`] promises:
//!
//! * Every condition that an operation names is judged inside the operation itself, by the store's own clock where it
//!   has one. Reading first and writing afterwards without a condition is wrong.
//! * Only the [`OwnerToken`] that was granted last changes a running record, and a settled record does not change before
//!   it expires, but for [`Store::resolve`] and [`Store::forget`].
//! * **The same call with the same token gives the same answer again.** The protocol repeats an operation whose answer
//!   did not arrive, and must not be told that it has lost to itself.
//! * An expired record is an absent one, whether or not it has been swept away.
//! * Spans may be zero, and as long as [`Duration::MAX`]. What is longer than a lifetime may be cut to one, each span by itself:
//!   a lease that is cut must still leave the whole of what comes after it.
//! * Keys have 1 to 255 bytes, and those that calls make have neither whitespace nor control characters in them. The names of
//!   steps have at most 255 bytes, and none of them is zero.
//! * An acknowledged write is not lost. A store that cannot promise that says so in its documentation.
//!
//! The trait is written with [`macro@async_trait`], and `Arc<dyn Store>` is itself a store.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use async_trait::async_trait;

pub use crate::transaction::Transactional;
pub use error::{StoreError, StoreErrorKind};
pub use record::{OwnerToken, Record, Settled, State, StateName, Step, StepState, Stored};

use crate::doctor::Finding;
use crate::fingerprint::Fingerprint;
use crate::immediate::Immediate;
use crate::key::RecordKey;

mod error;
mod record;

/// What a store answers when an operation could not be carried out, or when nobody knows whether it was.
pub type StoreResult<T> = Result<T, StoreError>;

/// A future that ends when a record may have changed; see [`Store::watch`].
pub type Watch = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where records are kept. See the [module](self) for what every implementation promises.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// A short name for errors and events: `"memory"`, `"sqlite"`.
    fn name(&self) -> &'static str;

    /// The largest result, in bytes after the codec, that [`complete`](Self::complete) accepts. `None`: no limit.
    ///
    /// The protocol records [`Settled::NotRetained`] in place of anything larger.
    fn max_result_bytes(&self) -> Option<usize> {
        None
    }

    /// Gives the caller the right to run the body, or shows the record that stands in the way.
    ///
    /// Granted when the record is
    /// * absent or expired: a new record of a new generation, `attempt` 1;
    /// * running with the request's own token: the same grant again with a fresh lease (an answer had been lost);
    /// * running with its lease over, of the same fingerprint, and taken over as [`TakeOver::allows`] says: `attempt` + 1,
    ///   with the steps and the mark of begun effects of the attempts before it.
    ///
    /// A take-over that would make more than [`Reserve::max_attempts`] attempts is not granted: the record is settled as
    /// [`Settled::Unknown`], left to [`OwnerToken::NOBODY`], kept with its steps for the lease's `unknown_ttl`, and shown.
    ///
    /// At every grant to a new token the fence becomes greater than every earlier fence of this key, across
    /// generations too: `max(old + 1, store clock in µs)`.
    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved>;

    /// Moves the end of the lease to now + `lease.duration`, if the record is running under `owner` (also when the
    /// lease is already over, but nobody has taken over).
    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write>;

    /// Writes down that from now on an effect may have happened, and renews, if the record is running under `owner`.
    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write>;

    /// Settles the record and keeps it for `keep` from now, if it is running under `owner`.
    ///
    /// Its steps are dropped, unless it becomes [`Settled::Unknown`]: [`resolve`](Self::resolve) may send that back to
    /// work, and what is done must not be done again.
    ///
    /// [`Write::Applied`] without any change if it is already settled under `owner`. Never creates a record.
    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write>;

    /// Ends the attempt of `owner` as [`Release`] says, if the record is running under `owner`.
    ///
    /// [`Write::Applied`] also when the record is absent: then this release, or one before it, has done its work.
    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write>;

    /// Writes one step of the running record of `owner`, and renews the lease.
    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep>;

    /// The record as it is now: from the primary, strongly consistent. `None` when absent or expired.
    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>>;

    /// Settles by hand what no attempt will settle: a record that is running with its lease over, unknown, or not
    /// retained, and whose token is still `seen`. The record gets `replacement` as its token, so that a late owner of
    /// the old one cannot write, nor be told that it has.
    ///
    /// [`Compared::Changed`] without any change if its token is already `replacement`, which has to be one that nobody has had.
    /// A record that `NotDone` has deleted cannot be recognised: that, again, is [`Compared::Differs`] with nothing there.
    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared>;

    /// Deletes a record that is not live (settled, or running with its lease over) and whose token is still `seen`.
    ///
    /// What it has deleted cannot be recognised: again, that is [`Compared::Differs`] with nothing there. A token does not say
    /// in which state the record was seen: [`Idempotency::forget`](crate::Idempotency::forget) looks after that.
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared>;

    /// Shows records for administration, a page at a time; ordered by creation where the store has an order.
    ///
    /// May be slow: on some stores it reads everything. Never used by a call.
    async fn list(&self, query: &ListQuery) -> StoreResult<Page>;

    /// Deletes at most `limit` expired records and says how many it deleted. Running it is optional: correctness never
    /// rests on it.
    async fn purge(&self, limit: usize) -> StoreResult<usize>;

    /// A future that ends soon after the record of `key` has changed, counted from the moment this method returned.
    ///
    /// Only a hint: it may end early, and a lost notification only delays the waiter, which polls besides. `None`: the
    /// store has no such thing, poll.
    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        let _ = key;
        Ok(None)
    }

    /// Asks the server whether it keeps what the store promises: whether it may drop or lose records, whether it is the
    /// primary, whether the schema is there and may be used, whether its clock agrees with this machine's. Nothing is
    /// changed. Empty: nothing was found.
    async fn examine(&self) -> StoreResult<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Where the records are, for calls in a transaction of the caller's. `None`: such calls are refused.
    ///
    /// A store that wraps another one hands this on.
    fn transactional(&self) -> Option<Transactional> {
        None
    }

    /// The same store for those who need not wait for it. `None`: it may take its time.
    #[doc(hidden)]
    fn immediate(&self) -> Option<&dyn Immediate> {
        None
    }
}

/// How long an attempt counts as alive without a word, and how long its silence is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// From now until the attempt counts as dead. Zero ends the lease at once.
    pub duration: Duration,
    /// From the end of the lease until the record of a silent attempt expires.
    pub unknown_ttl: Duration,
}

/// What [`Store::reserve`] is asked.
#[derive(Clone, Copy, Debug)]
pub struct Reserve<'a> {
    /// The record.
    pub key: &'a RecordKey,
    /// The token of this attempt; the same again when an answer did not arrive.
    pub owner: OwnerToken,
    /// The fingerprint of this call's arguments.
    pub fingerprint: Fingerprint,
    /// The lease that the attempt gets.
    pub lease: Lease,
    /// Whether this call may take over from an attempt whose lease is over.
    pub take_over: TakeOver,
    /// The number of the last attempt that may be granted.
    pub max_attempts: u32,
}

/// When a call may take over a running record whose lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    /// Only between steps: a step is finished, none has begun, and no other effect has.
    BetweenSteps,
    /// As long as no effect has begun: neither by [`Store::begin_effects`] nor by a begun step.
    BeforeEffects,
    /// Always.
    Always,
}

impl TakeOver {
    /// Whether this policy allows a take-over, given what the record says. Stores that are written in Rust use this;
    /// the others say the same in their own language.
    pub fn allows(self, effects_begun: bool, steps: &[Step]) -> bool {
        let in_doubt = effects_begun || steps.iter().any(|step| step.state == StepState::Begun);
        match self {
            Self::BetweenSteps => !in_doubt && !steps.is_empty(),
            Self::BeforeEffects => !in_doubt,
            Self::Always => true,
        }
    }
}

/// The answer of [`Store::reserve`].
#[derive(Clone, Debug)]
pub enum Reserved {
    /// The caller owns the record and may run.
    Granted(Grant),
    /// The record that stands in the way.
    Held(Record),
}

/// The right to run the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// 1 for the first attempt of a generation, one more at every take-over.
    pub attempt: u32,
    /// The fencing token: greater than that of every earlier attempt of this key.
    pub fence: u64,
    /// The steps that earlier attempts have written.
    pub steps: Vec<Step>,
}

/// Whether a write by an owner token found that owner in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The record is as asked.
    Applied,
    /// The record is not this owner's, or not running any more. Nothing was changed.
    Lost,
}

/// The answer of [`Store::put_step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutStep {
    /// The step is as asked.
    Stored,
    /// The step is already done; this is its result, and it stays. So is a call answered that repeats the one which
    /// finished the step: the bytes are then its own.
    Exists(Arc<[u8]>),
    /// The record is not this owner's, or not running any more. Nothing was changed.
    Lost,
}

/// How [`Store::release`] ends an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Nothing has happened: the record is deleted. If it has finished steps, they and the record stay, every mark of a
    /// begun step and of begun effects is taken away, and the lease ends now, so that the next call continues. As with the
    /// others of these, the record then expires `unknown_ttl` later; a lease that was over stays as it ended.
    Forget,
    /// The body was never polled, or the attempt ended before it could try: as if it had not been granted. The first
    /// attempt's record is deleted if it has no steps; otherwise the lease ends now, the attempt is taken off the count,
    /// and the record is left to [`OwnerToken::NOBODY`], so that a repetition cannot take off another one: that is
    /// [`Write::Lost`].
    Unused,
    /// Nobody knows what happened: the lease ends now, the record expires `unknown_ttl` later, and everything else
    /// stays. A lease that is already over stays as it ended, and its attempt as counted, so that a repeated call
    /// changes nothing.
    Abandon,
}

/// What an operator found out about a record that nobody settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It happened: the record is settled like this and kept for `keep` from now.
    Done {
        /// [`Settled::Completed`] or [`Settled::Failed`].
        settled: Settled,
        /// From now until it expires.
        keep: Duration,
    },
    /// It did not happen: as [`Release::Forget`], and the attempts are counted anew. A record that stays is running
    /// with its lease over, and expires when it would have.
    NotDone,
}

/// The answer of a compare-and-set by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The record was as it had been seen, and is changed.
    Changed,
    /// The record is live, of another owner or gone, and was left alone. This is what is there now.
    Differs(Option<Box<Record>>),
}

/// Which records [`Store::list`] shows.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only those of this operation.
    pub operation: Option<String>,
    /// Only those in this state.
    pub state: Option<StateName>,
    /// Only those that wait for somebody: unknown, or running with the lease over.
    pub stuck: bool,
    /// Where the page before this one ended: its [`Page::next`].
    pub after: Option<String>,
    /// At most so many; 0 means 100.
    pub limit: usize,
}

impl ListQuery {
    /// How many records the page may have.
    pub fn page_size(&self) -> usize {
        if self.limit == 0 { 100 } else { self.limit }
    }

    /// Whether the query asks for `record`.
    pub fn matches(&self, record: &Record) -> bool {
        self.operation.as_deref().is_none_or(|operation| *operation == **record.key.operation())
            && self.state.is_none_or(|state| state == record.state.name())
            && (!self.stuck || record.state.is_abandoned() || record.state.name() == StateName::Unknown)
    }
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// What to ask for the next page with; `None` after the last one.
    pub next: Option<String>,
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn max_result_bytes(&self) -> Option<usize> {
        (**self).max_result_bytes()
    }
    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        (**self).reserve(request).await
    }
    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        (**self).renew(key, owner, lease).await
    }
    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        (**self).begin_effects(key, owner, lease).await
    }
    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        (**self).complete(key, owner, settled, keep).await
    }
    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        (**self).release(key, owner, how).await
    }
    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        (**self).put_step(key, owner, step, lease).await
    }
    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        (**self).load(key).await
    }
    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        (**self).resolve(key, seen, replacement, resolution).await
    }
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        (**self).forget(key, seen).await
    }
    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        (**self).list(query).await
    }
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        (**self).purge(limit).await
    }
    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        (**self).watch(key).await
    }
    async fn examine(&self) -> StoreResult<Vec<Finding>> {
        (**self).examine().await
    }
    fn transactional(&self) -> Option<Transactional> {
        (**self).transactional()
    }
    fn immediate(&self) -> Option<&dyn Immediate> {
        (**self).immediate()
    }
}
