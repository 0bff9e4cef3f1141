//! A store in a PostgreSQL table, for the processes of any number of machines.

mod admin;
mod ask;
mod attempt;
mod batch;
mod builder;
mod examine;
mod familiar;
mod fault;
mod link;
mod operations;
mod prepared;
mod record;
mod reserve;
mod schema;
mod text;
mod transaction;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgPool;

use self::ask::Sending;
use self::attempt::{Complete, Renew};
use self::batch::Batcher;
use self::familiar::{Familiar, stands_in_the_way};
use self::fault::Fault;
use self::link::Task;
use self::operations::{Examine, Forget, LetGo, Load, Mark, On, Prepare, Purge, PutOne, Resolve};
use self::prepared::Prepared;
use self::text::Statements;
use self::watch::Watchers;
use super::sql::Names;
use crate::doctor::Finding;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreError, StoreResult, Watch, Write,
};
use crate::transaction::Transactional;

pub use self::builder::PostgresStoreBuilder;
pub(crate) use self::transaction::PostgresLink;

/// What errors and events call this store.
const NAME: &str = "postgres";

/// A value has at most 1 GiB, and so has a message with its other values.
const MAX_RESULT_BYTES: usize = 1_000_000_000;

/// Keeps records in a PostgreSQL table, for all processes that reach the server.
///
/// ```no_run
/// # async fn open(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_runtime::stores::PostgresStore;
///
/// let store = PostgresStore::new(pool); // the application's own pool
/// let store = PostgresStore::connect("postgres://shop@db.example/shop").await?; // or one of the store's own
/// # Ok(()) }
/// ```
///
/// * **One statement an operation**, which decides and writes by itself, by the server's clock: a round trip each. No
///   connection and no transaction is held while a body runs.
/// * **Replays only read.** A duplicate of a finished or a running call takes no lock and writes no log.
/// * **No session state.** Every statement stands alone, so a proxy in transaction mode (PgBouncer) may be between; it
///   has to know prepared statements, or [`prepared_statements(false)`](PostgresStoreBuilder::prepared_statements) does
///   without. Statements are right under every default isolation level: a serialization failure is asked again.
/// * **As durable as the server commits.** With `synchronous_commit = off`, without `fsync`, in an unlogged table or on a
///   fail-over to an asynchronous replica, acknowledged writes can be lost, **and then calls that had ended run again**.
///   [`examine`](Store::examine) says so.
/// * **Fences** grow from generation to generation as long as the record is there or the server's clock does not go back.
/// * **Unreadable rows are left alone.** They answer [`Unreadable`](crate::store::StoreErrorKind::Unreadable), and a list
///   leaves them out.
/// * Steps are kept in the row of their record, and written anew with each step: a step's result should be small.
///
/// The table is created when the first call finds none. sqlx tests a connection of a pool before each use unless
/// `test_before_acquire(false)` says otherwise: one more round trip, which the store does not need, since it throws broken
/// connections away and asks again. A handle is cheap to clone.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

/// The statements, and how they are sent.
#[derive(Debug)]
struct Sql {
    statements: Statements,
    prepared: Prepared,
    sending: Sending,
    /// The table's quoted name.
    table: String,
    /// What makes the table.
    schema: String,
    /// Whether to make it when it is missing.
    create: bool,
    names: Names,
}

struct Inner {
    pool: PgPool,
    sql: Arc<Sql>,
    watchers: Option<Arc<Watchers>>,
    batcher: Option<Arc<Batcher>>,
    familiar: Familiar,
    /// The block at which the next purge begins.
    purge_place: AtomicI64,
}

impl PostgresStore {
    /// A store on the application's pool, with the defaults. Nothing is asked of the server yet.
    pub fn new(pool: PgPool) -> Self {
        // The default names are names.
        Self::builder(pool).build_checked()
    }

    /// Connects with a pool of the store's own, and creates the table if it is missing.
    ///
    /// # Errors
    /// Those of [`PostgresStoreBuilder::open`]; [`Refused`](crate::store::StoreErrorKind::Refused) also when the URL is
    /// none.
    pub async fn connect(url: &str) -> StoreResult<Self> {
        Self::builder(Self::pool_for(url)?).open().await
    }

    /// The pool that [`connect`](Self::connect) makes, for a store with other settings: of at most 16 connections, none
    /// of them tested before use. It connects when it is first used.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when the URL is none.
    pub fn pool_for(url: &str) -> StoreResult<PgPool> {
        builder::pool(url).map_err(|fault| fault.into_error("", false))
    }

    /// Sets up a store on `pool`.
    pub fn builder(pool: PgPool) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(pool)
    }

    fn from_parts(pool: PgPool, sql: Sql, channel: Option<String>, batch: usize) -> Self {
        let sql = Arc::new(sql);
        let batcher = (batch > 1).then(|| Arc::new(Batcher::new(pool.clone(), Arc::clone(&sql), batch)));
        let watchers = channel.map(|channel| Arc::new(Watchers::new(channel)));
        Self {
            inner: Arc::new(Inner {
                pool,
                sql,
                watchers,
                batcher,
                familiar: Familiar::new(),
                purge_place: AtomicI64::new(0),
            }),
        }
    }

    /// The pool.
    pub fn pool(&self) -> &PgPool {
        &self.inner.pool
    }

    /// Creates the table if it is missing and the store may, and looks at its version.
    async fn prepare(&self) -> StoreResult<()> {
        let sql = &*self.inner.sql;
        let prepared = link::run(&self.inner.pool, &On(sql, Prepare)).await;
        prepared.map_err(|fault| fault.into_error(&sql.table, false))
    }

    /// Asks `request`; where there is no table, makes one and asks again.
    async fn ask<R>(&self, request: R) -> Result<<On<'_, R> as Task>::Answer, Fault>
    where
        for<'a> On<'a, R>: Task,
        R: Send + Sync,
    {
        let Inner { pool, sql, .. } = &*self.inner;
        let task = On(sql, request);
        match link::run(pool, &task).await {
            Err(fault) if fault.is_missing_table() && sql.create => {
                link::run(pool, &On(sql, Prepare)).await?;
                link::run(pool, &task).await
            }
            answer => answer,
        }
    }

    /// Reserves; where the record is likely to be there, after a look at it that may be all that is needed.
    async fn reserve_alone(&self, request: Reserve<'_>) -> Result<Reserved, Fault> {
        let familiar = &self.inner.familiar;
        if familiar.has(request.key) {
            match self.ask(Load(request.key)).await? {
                Some(record) if stands_in_the_way(&record, &request) => return Ok(Reserved::Held(record)),
                Some(_) => {}
                None => familiar.remove(request.key),
            }
        }
        let answer = self.ask(request).await?;
        familiar.add(request.key);
        Ok(answer)
    }

    /// The error for a caller. `makes_record`: whether the operation would have added a record.
    fn error(&self, fault: Fault, makes_record: bool) -> StoreError {
        fault.into_error(&self.inner.sql.table, makes_record)
    }

    /// Wakes who waits for `key` in this process, when something has been written. Other processes hear of it from the
    /// server.
    fn tell<T>(&self, key: &RecordKey, answer: Result<T, Fault>) -> StoreResult<T> {
        if let Some(watchers) = &self.inner.watchers {
            watchers.wake(key);
        }
        answer.map_err(|fault| self.error(fault, false))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("table", &self.inner.sql.table)
            .field("batch", &self.inner.batcher.is_some())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn max_result_bytes(&self) -> Option<usize> {
        // As text, two digits stand for each byte.
        Some(match self.inner.sql.sending {
            Sending::Prepared => MAX_RESULT_BYTES,
            Sending::Plain => MAX_RESULT_BYTES / 2,
        })
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        let answer = match &self.inner.batcher {
            Some(batcher) => batcher.reserve(request.into()).await,
            None => self.reserve_alone(request).await,
        };
        answer.map_err(|fault| self.error(fault, true))
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let renew = Renew { key: key.clone(), owner, lease, effects: false };
        let answer = match &self.inner.batcher {
            Some(batcher) => batcher.renew(renew).await,
            None => self.ask(renew).await,
        };
        if lease.duration.is_zero() {
            return self.tell(key, answer);
        }
        answer.map_err(|fault| self.error(fault, false))
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let renew = Renew { key: key.clone(), owner, lease, effects: true };
        let answer = match &self.inner.batcher {
            Some(batcher) => batcher.renew(renew).await,
            None => self.ask(renew).await,
        };
        answer.map_err(|fault| self.error(fault, false))
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        let complete = Complete { key: key.clone(), owner, settled: settled.clone(), keep };
        let answer = match &self.inner.batcher {
            Some(batcher) => batcher.complete(complete).await,
            None => self.ask(complete).await,
        };
        self.tell(key, answer)
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let answer = self.ask(LetGo(key, owner, how)).await;
        self.inner.familiar.remove(key);
        self.tell(key, answer)
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        self.ask(PutOne(key, owner, step, lease)).await.map_err(|fault| self.error(fault, false))
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.ask(Load(key)).await.map_err(|fault| self.error(fault, false))
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let answer = self.ask(Resolve(key, (seen, replacement), resolution)).await;
        self.tell(key, answer)
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        let answer = self.ask(Forget(key, seen)).await;
        self.inner.familiar.remove(key);
        self.tell(key, answer)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.ask(query).await.map_err(|fault| self.error(fault, false))
    }

    /// Deletes in batches, without a lock for longer than one of them. A call looks at half a gigabyte of the table at
    /// most; the next goes on where it ended.
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        let place = &self.inner.purge_place;
        self.ask(Purge(limit, place)).await.map_err(|fault| self.error(fault, false))
    }

    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        let Some(watchers) = &self.inner.watchers else { return Ok(None) };
        if !watchers.hears(&self.inner.pool).await {
            return Ok(None);
        }
        // Before the mark is set: whoever sees it may tell at once.
        let watch = watchers.watch(key);
        self.ask(Mark(key)).await.map_err(|fault| self.error(fault, false))?;
        Ok(Some(watch))
    }

    fn transactional(&self) -> Option<Transactional> {
        Some(Transactional::postgres(self.clone()))
    }

    async fn examine(&self) -> StoreResult<Vec<Finding>> {
        let Inner { pool, sql, .. } = &*self.inner;
        link::run(pool, &On(sql, Examine)).await.map_err(|fault| self.error(fault, false))
    }
}
