//! What every check works with: the store, keys of its own, and words for what must hold.

use std::array;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Advance;
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{
    Compared, Grant, Lease, OwnerToken, Record, Release, Reserve, Reserved, Settled, State, Step, StepState,
    Store, StoreError, Stored, TakeOver, Write,
};

/// The arguments of nearly every call.
pub(super) const SAME: Fingerprint = Fingerprint::from_parts(1, [1; 32]);
/// Other arguments.
pub(super) const OTHER: Fingerprint = Fingerprint::from_parts(1, [2; 32]);
/// Longer than any run of the suite.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// A lease that never ends by itself during the suite.
pub(super) const LEASE: Lease = Lease { duration: LONG, unknown_ttl: LONG };

/// How a check ends.
pub(super) type Checked<T = ()> = Result<T, Failure>;

/// Why a check failed, in words.
#[derive(Debug)]
pub(super) struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        Self(format!("an error: {error} ({:?}): {source}", error.kind()))
    }
}

/// The check fails because of `why`.
pub(super) fn fail<T>(why: impl Into<String>) -> Checked<T> {
    Err(Failure(why.into()))
}

/// `seen` must be `expected`.
pub(super) fn same<T: PartialEq + fmt::Debug + ?Sized>(what: &str, seen: &T, expected: &T) -> Checked {
    if seen == expected { Ok(()) } else { fail(format!("{what}: expected {expected:?}, saw {seen:?}")) }
}

/// `holds` must be true.
pub(super) fn holds(what: &str, holds: bool) -> Checked {
    if holds { Ok(()) } else { fail(format!("{what}: it does not hold")) }
}

/// `seen` must be greater than nothing and not greater than `most`.
pub(super) fn within(what: &str, seen: Duration, most: Duration) -> Checked {
    if !seen.is_zero() && seen <= most {
        Ok(())
    } else {
        fail(format!("{what}: expected more than 0 and at most {most:?}, saw {seen:?}"))
    }
}

/// The call must have been granted.
pub(super) fn granted(what: &str, reserved: Reserved) -> Checked<Grant> {
    match reserved {
        Reserved::Granted(grant) => Ok(grant),
        Reserved::Held(record) => fail(format!("{what}: expected a grant, saw {record:?}")),
    }
}

/// The call must have been shown a record.
pub(super) fn held(what: &str, reserved: Reserved) -> Checked<Record> {
    match reserved {
        Reserved::Held(record) => Ok(record),
        Reserved::Granted(grant) => fail(format!("{what}: expected a record in the way, saw {grant:?}")),
    }
}

/// The record must have been left alone; this is what was shown.
pub(super) fn differs(what: &str, compared: Compared) -> Checked<Option<Record>> {
    match compared {
        Compared::Differs(record) => Ok(record.map(|record| *record)),
        Compared::Changed => fail(format!("{what}: expected that the record is left alone, saw it changed")),
    }
}

/// The record must be running; whether effects have begun.
pub(super) fn running(what: &str, record: &Record) -> Checked<(Duration, bool)> {
    match record.state {
        State::Running { lease_left, effects_begun } => Ok((lease_left, effects_begun)),
        State::Settled(_) => fail(format!("{what}: expected it running, saw {record:?}")),
    }
}

/// The record must be settled; with what.
pub(super) fn settled(what: &str, record: &Record) -> Checked<Settled> {
    match &record.state {
        State::Settled(settled) => Ok(settled.clone()),
        State::Running { .. } => fail(format!("{what}: expected it settled, saw {record:?}")),
    }
}

/// `after` must be `before`, but for the time that has passed.
pub(super) fn unchanged(what: &str, before: &Record, after: &Record) -> Checked {
    let mut aged = before.clone();
    aged.expires_in = after.expires_in;
    if let (State::Running { lease_left, .. }, State::Running { lease_left: left, .. }) =
        (&mut aged.state, &after.state)
        && left <= lease_left
    {
        *lease_left = *left;
    }
    same(what, after, &aged)
}

/// Tokens that nobody has.
pub(super) fn tokens<const N: usize>() -> [OwnerToken; N] {
    array::from_fn(|_| OwnerToken::random())
}

/// A completed result.
pub(super) fn completed(bytes: &[u8]) -> Settled {
    Settled::Completed(Stored { version: 1, bytes: bytes.into() })
}

/// A step that has begun.
pub(super) fn begun(name: &str) -> Step {
    Step { name: name.into(), state: StepState::Begun }
}

/// A step that is done.
pub(super) fn done(name: &str, bytes: &[u8]) -> Step {
    Step { name: name.into(), state: StepState::Done(bytes.into()) }
}

/// The store, and keys that no other check uses.
#[derive(Clone)]
pub(super) struct Bench {
    pub(super) store: Arc<dyn Store>,
    pub(super) tick: Duration,
    advance: Advance,
    prefix: String,
    next: Arc<AtomicU32>,
}

impl Bench {
    pub(super) fn new(store: Arc<dyn Store>, advance: Advance, tick: Duration) -> Self {
        let prefix = format!("conformance/{}", OwnerToken::random());
        Self { store, tick, advance, prefix, next: Arc::default() }
    }

    /// Lets time pass.
    pub(super) async fn advance(&self, by: Duration) {
        (self.advance)(by).await;
    }

    /// The operation of this check's keys.
    pub(super) fn operation(&self) -> &str {
        &self.prefix
    }

    /// A key that nobody has used.
    pub(super) fn key(&self) -> RecordKey {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.key_of(&n.to_string())
    }

    /// The key with this ending.
    pub(super) fn key_of(&self, end: &str) -> RecordKey {
        RecordKey::new(self.operation(), format!("{}/{end}", self.prefix))
    }

    /// What a call asks that takes over whatever it may.
    pub(super) fn request<'a>(&self, key: &'a RecordKey, owner: OwnerToken) -> Reserve<'a> {
        let _ = self;
        let take_over = TakeOver::Always;
        Reserve { key, owner, fingerprint: SAME, lease: LEASE, take_over, max_attempts: 100 }
    }

    /// [`Store::reserve`] with [`Bench::request`].
    pub(super) async fn reserve(&self, key: &RecordKey, owner: OwnerToken) -> Checked<Reserved> {
        Ok(self.store.reserve(self.request(key, owner)).await?)
    }

    /// A reservation that must be granted.
    pub(super) async fn grant(&self, key: &RecordKey, owner: OwnerToken) -> Checked<Grant> {
        granted("reserve", self.reserve(key, owner).await?)
    }

    /// The record, which must be there.
    pub(super) async fn load(&self, key: &RecordKey) -> Checked<Record> {
        match self.store.load(key).await? {
            Some(record) => Ok(record),
            None => fail("load: expected a record, saw none"),
        }
    }

    /// There must be no record.
    pub(super) async fn absent(&self, what: &str, key: &RecordKey) -> Checked {
        same(what, &self.store.load(key).await?, &None)
    }

    /// The record must still be as it was.
    pub(super) async fn still(&self, what: &str, before: &Record) -> Checked {
        unchanged(what, before, &self.load(&before.key).await?)
    }

    /// Ends the lease of `owner` at once, and nothing else.
    pub(super) async fn abandon(&self, key: &RecordKey, owner: OwnerToken) -> Checked {
        let write = self.store.release(key, owner, Release::Abandon).await?;
        same("release (abandon) by the owner", &write, &Write::Applied)
    }

    /// Settles the record of `owner` with `settled` and keeps it for long.
    pub(super) async fn complete(&self, key: &RecordKey, owner: OwnerToken, settled: &Settled) -> Checked {
        let write = self.store.complete(key, owner, settled, LONG).await?;
        same("complete by the owner", &write, &Write::Applied)
    }

    /// Everything that `owner` tries must be told lost, and must change nothing.
    pub(super) async fn powerless(&self, who: &str, key: &RecordKey, owner: OwnerToken) -> Checked {
        let before = self.store.load(key).await?;
        let store = &self.store;
        let lost = Write::Lost;
        same(&format!("renew by {who}"), &store.renew(key, owner, LEASE).await?, &lost)?;
        same(&format!("begin_effects by {who}"), &store.begin_effects(key, owner, LEASE).await?, &lost)?;
        for step in [begun("stolen"), done("stolen", b"x")] {
            let put = store.put_step(key, owner, &step, LEASE).await?;
            same(&format!("put_step by {who}"), &put, &crate::store::PutStep::Lost)?;
        }
        for end in [completed(b"stolen"), Settled::NotRetained, Settled::Unknown] {
            same(&format!("complete by {who}"), &store.complete(key, owner, &end, LONG).await?, &lost)?;
        }
        // An absent record has nothing that a release could spoil, so there it may say that its work is done.
        let release = if before.is_some() { lost } else { Write::Applied };
        for how in [Release::Forget, Release::Abandon, Release::Unused] {
            same(&format!("release by {who}"), &store.release(key, owner, how).await?, &release)?;
        }
        match before {
            Some(before) => self.still(&format!("the record after the tries of {who}"), &before).await,
            None => self.absent(&format!("the record after the tries of {who}"), key).await,
        }
    }
}
