//! A store in Redis or Valkey: one server, sentinels, or a cluster.

mod builder;
mod clock;
mod doctor;
mod fault;
mod link;
mod list;
mod notify;
mod reconnecting;
mod record;
mod replicas;
mod reserve;
mod script;
mod url;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Value, cmd};

use self::clock::ServerClock;
use self::link::Link;
use self::notify::Notifier;
use self::record::{Raw, keep_millis, lease_micros, settled_parts, span_micros};
use self::replicas::Replicas;
use self::reserve::Shown;
use self::script::{Script, Scripts};
use crate::doctor::Finding;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, StepState, Store, StoreError, StoreErrorKind, StoreResult, Watch, Write,
};

pub use self::builder::RedisStoreBuilder;

/// What errors and events call this store.
const NAME: &str = "redis";

/// Redis takes 512 MB, but nobody else is served while it copies them.
const MAX_RESULT_BYTES: usize = 64 * 1024 * 1024;

/// In bytes: a step has five digits for the length of its name.
const LONGEST_STEP_NAME: usize = 99_999;

/// Keeps records in Redis or Valkey, for any number of machines.
///
/// ```no_run
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_runtime::stores::RedisStore;
///
/// let store = RedisStore::open("redis://localhost:6379/0").await?;
/// # Ok(()) }
/// ```
///
/// * **One key per record**, a string with an expiry, so that a cluster takes it. Expired records need no sweeping:
///   [`purge`](Store::purge) has nothing to do and returns 0.
/// * **One round trip per operation**: a script, sent by its digest; a first attempt and a replay go without a script, on
///   Redis 7 and later outside of a cluster.
/// * **The server's clock** judges leases. Expiries are the server's own, in milliseconds.
/// * **Fences** are the server's clock in microseconds, and grow across generations while that clock is not set back.
/// * **Only as durable as the server.** An acknowledged reservation is gone when the server restarts without it
///   (`appendfsync everysec` loses up to a second) or fails over to a replica that does not have it yet. Then a call runs
///   again. [`wait_replicas`](RedisStoreBuilder::wait_replicas) makes that less likely.
/// * **No eviction.** Under any `maxmemory-policy` but `noeviction` the server drops records when memory is short.
///   [`examine`](Store::examine) finds that out, where it is allowed to ask.
/// * **Waiting** callers are woken by pub/sub over one connection of the process; only what somebody waits for is
///   published.
///
/// A handle is cheap to clone.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

struct Inner {
    link: Link,
    prefix: String,
    scripts: Scripts,
    notifier: Option<Notifier>,
    replicas: Option<Replicas>,
    clock: ServerClock,
    /// Whether the server takes `SET … NX GET` and `PEXPIRETIME`.
    plain: AtomicBool,
}

impl RedisStore {
    /// Connects to what `url` names.
    ///
    /// | URL | |
    /// | --- | --- |
    /// | `redis://user:password@host:6379/0` | one server; `rediss://` with TLS, `redis+unix:///path` a socket |
    /// | `redis-sentinel://user:password@one:26379,two/name/0` | the primary that sentinels call `name` |
    /// | `redis-cluster://user:password@one:6379,two` | a cluster that some of these nodes belong to |
    ///
    /// `valkey://` is `redis://`. TLS (`rediss://`, `rediss-sentinel://`, `rediss-cluster://`) needs the feature
    /// `redis-tls-rustls`.
    ///
    /// # Errors
    /// Those of [`RedisStoreBuilder::open`].
    pub async fn open(url: impl Into<String>) -> StoreResult<Self> {
        Self::builder(url).open().await
    }

    fn new(
        link: Link,
        prefix: String,
        channel: &str,
        notifier: Option<Notifier>,
        replicas: Option<Replicas>,
    ) -> Self {
        // The nodes of a cluster have a clock each, and whoever waits for replicas does so after a script.
        let plain = AtomicBool::new(!link.is_cluster() && replicas.is_none());
        let (scripts, clock) = (Scripts::new(channel), ServerClock::default());
        Self { inner: Arc::new(Inner { link, prefix, scripts, notifier, replicas, clock, plain }) }
    }

    fn link(&self) -> &Link {
        &self.inner.link
    }

    fn plain_commands(&self) -> bool {
        self.inner.plain.load(Ordering::Relaxed)
    }

    fn use_scripts_only(&self) {
        self.inner.plain.store(false, Ordering::Relaxed);
    }

    /// What everything begins with in Redis.
    pub fn prefix(&self) -> &str {
        &self.inner.prefix
    }

    fn redis_key(&self, key: &RecordKey) -> Vec<u8> {
        [self.inner.prefix.as_bytes(), key.as_str().as_bytes()].concat()
    }

    /// Finds out whether there is somebody at the other end.
    async fn greet(&self) -> StoreResult<()> {
        self.link().ask(&cmd("PING")).await.map(drop).map_err(|error| fault::error(error, false))
    }

    async fn script(
        &self,
        script: &Script,
        key: &RecordKey,
        arguments: impl Fn(&mut Cmd) + Send,
    ) -> StoreResult<Value> {
        let answer = script.run(self.link(), &self.redis_key(key), arguments).await;
        answer.map_err(|error| fault::error(error, false))
    }

    async fn renew_record(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        lease: Lease,
        effects: &str,
    ) -> StoreResult<Write> {
        let answer = self.script(&self.inner.scripts.renew, key, |command| {
            command.arg(owner.as_bytes()).arg(lease_micros(lease.duration));
            command.arg(span_micros(lease.unknown_ttl)).arg(effects);
        });
        written(&answer.await?)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("prefix", &self.inner.prefix)
            .field("cluster", &self.link().is_cluster())
            .finish_non_exhaustive()
    }
}

fn written(answer: &Value) -> StoreResult<Write> {
    match answer {
        Value::Int(1) => Ok(Write::Applied),
        Value::Int(0) => Ok(Write::Lost),
        other => Err(fault::unexpected(other)),
    }
}

fn compared(key: &RecordKey, answer: Value) -> StoreResult<Compared> {
    match answer {
        Value::Int(1) => Ok(Compared::Changed),
        Value::Nil => Ok(Compared::Differs(None)),
        shown => Ok(Compared::Differs(Some(Box::new(record_of(key.clone(), shown)?)))),
    }
}

/// The record that a script shows.
fn record_of(key: RecordKey, answer: Value) -> StoreResult<Record> {
    let shown = Shown::from(answer)?;
    let record = Raw::decode(&shown.bytes, None).and_then(|raw| raw.record(key, shown.now, shown.expires_in));
    record.ok_or_else(|| fault::unreadable("content"))
}

#[async_trait]
impl Store for RedisStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn max_result_bytes(&self) -> Option<usize> {
        Some(MAX_RESULT_BYTES)
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        self.reserve_record(&request).await
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.renew_record(key, owner, lease, "0").await
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.renew_record(key, owner, lease, "1").await
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        let (state, rest) = settled_parts(settled);
        let answer = self.script(&self.inner.scripts.complete, key, |command| {
            command.arg(owner.as_bytes()).arg(state).arg(keep_millis(keep)).arg(&rest);
        });
        written(&answer.await?)
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let how = match how {
            Release::Forget => "forget",
            Release::Unused => "unused",
            Release::Abandon => "abandon",
        };
        let answer = self.script(&self.inner.scripts.release, key, |command| {
            command.arg(owner.as_bytes()).arg(how);
        });
        written(&answer.await?)
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        if step.name.len() > LONGEST_STEP_NAME {
            let words = "the name of a step is too long";
            return Err(StoreError::new(NAME, StoreErrorKind::Refused, words));
        }
        let (letter, result): (_, &[u8]) = match &step.state {
            StepState::Begun => ("b", &[]),
            StepState::Done(result) => ("d", result),
        };
        let answer = self.script(&self.inner.scripts.put_step, key, |command| {
            command.arg(owner.as_bytes()).arg(lease_micros(lease.duration));
            command.arg(span_micros(lease.unknown_ttl)).arg(&*step.name).arg(letter).arg(result);
        });
        match answer.await? {
            Value::Int(1) => Ok(PutStep::Stored),
            Value::Int(0) => Ok(PutStep::Lost),
            Value::BulkString(result) => Ok(PutStep::Exists(result.into())),
            other => Err(fault::unexpected(&other)),
        }
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        match self.script(&self.inner.scripts.load, key, |_| ()).await? {
            Value::Nil => Ok(None),
            shown => record_of(key.clone(), shown).map(Some),
        }
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let (state, rest, keep) = match resolution {
            Resolution::NotDone => ("", Vec::new(), Duration::ZERO),
            Resolution::Done { settled, keep } => {
                let (state, rest) = settled_parts(settled);
                (state, rest, *keep)
            }
        };
        let answer = self.script(&self.inner.scripts.resolve, key, |command| {
            command.arg(seen.as_bytes()).arg(replacement.as_bytes()).arg(state);
            command.arg(keep_millis(keep)).arg(&rest);
        });
        compared(key, answer.await?)
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        let answer = self.script(&self.inner.scripts.forget, key, |command| {
            command.arg(seen.as_bytes());
        });
        compared(key, answer.await?)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.list_records(query).await
    }

    /// The server drops expired records by itself: always 0.
    async fn purge(&self, _limit: usize) -> StoreResult<usize> {
        Ok(0)
    }

    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        let Some(notifier) = &self.inner.notifier else { return Ok(None) };
        let Some(watch) = notifier.watch(self.redis_key(key)).await else { return Ok(None) };
        // Only what somebody waits for is published.
        self.script(&self.inner.scripts.watch, key, |_| ()).await?;
        Ok(Some(watch))
    }

    async fn examine(&self) -> StoreResult<Vec<Finding>> {
        self.examine_server().await
    }
}
