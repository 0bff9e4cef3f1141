//! A store in one SQLite file, for the processes of one machine.

mod admin;
mod attempt;
mod builder;
mod fault;
#[cfg(feature = "sqlite-transactions")]
mod ground;
mod host_clock;
mod job;
#[cfg(feature = "sqlite-transactions")]
mod patience;
mod queue;
mod reserve;
mod row;
mod schema;
mod session;
#[cfg(feature = "sqlite-transactions")]
mod transaction;
mod url;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::oneshot;

use self::fault::Fault;
use self::job::{Operation, Task};
use self::queue::{Message, Queue, Requests, Waiting};
use self::writer::Settings;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreError, StoreResult, Write,
};

pub use self::builder::{SqliteStoreBuilder, Synchronous};
#[cfg(feature = "sqlite-transactions")]
pub(crate) use self::transaction::SqliteLink;
pub(crate) use self::url::file_of;

/// What errors and events call this store.
const NAME: &str = "sqlite";

/// SQLite takes a row of 1,000,000,000 bytes; the other columns need some of them.
const MAX_RESULT_BYTES: usize = 1_000_000_000 - 64 * 1024;

/// Keeps records in a SQLite file, for all tasks, threads and processes of one machine.
///
/// ```no_run
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_runtime::stores::SqliteStore;
///
/// let store = SqliteStore::open("/var/lib/shop/idempotency.db").await?;
/// # Ok(()) }
/// ```
///
/// * **Durable.** An acknowledged write is on the disk, unless [`Synchronous::Normal`] was chosen.
/// * **One host.** Processes find each other through the file's locks and its shared memory. On a network file system
///   those do not work: two hosts would both run.
/// * **Never blocks the executor.** A thread of the store's own has the connection. Operations that wait at the same
///   time share one commit; one that is alone does not wait for others.
/// * **Replays need no lock.** What a settled or living record answers is read beside whoever is writing. Waiting for the
///   write lock is bounded by [`busy_timeout`](SqliteStoreBuilder::busy_timeout).
/// * **Host time.** Leases and ttls go by the host's time of day, in microseconds, taken after the write lock is held.
///   Setting the clock moves them; it never lets a stale owner write.
/// * **The file may be the application's own.** The store touches only its three tables, and sets write-ahead logging.
///   If the file is deleted or replaced while the store is open, operations are
///   [`Unavailable`](crate::store::StoreErrorKind::Unavailable) until there is one with tables again; the store does not
///   start an empty one by itself.
/// * **Unreadable rows are left alone.** They answer [`Unreadable`](crate::store::StoreErrorKind::Unreadable), and a
///   list leaves them out.
///
/// A handle is cheap to clone. When the last one is dropped, the thread finishes what was asked and closes the file;
/// [`close`](Self::close) waits for that. Fences grow across all keys of a file, also when the clock does not. A page of a
/// list may be short before the last one, and goes by creation.
#[derive(Clone)]
pub struct SqliteStore {
    requests: Requests,
    path: Arc<Path>,
    table: Arc<str>,
    #[cfg(feature = "sqlite-transactions")]
    ground: Arc<ground::Ground>,
}

impl SqliteStore {
    /// Opens `path` with the defaults; creates the file and its tables if they are missing.
    ///
    /// # Errors
    /// Those of [`SqliteStoreBuilder::open`].
    pub async fn open(path: impl Into<PathBuf>) -> StoreResult<Self> {
        Self::builder(path).open().await
    }

    /// Sets up a store at `path`, which is a file's name and never a URI.
    pub fn builder(path: impl Into<PathBuf>) -> SqliteStoreBuilder {
        SqliteStoreBuilder::new(path.into())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the records table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Ends the store for all its handles: what was asked before is done, then the file is closed, then this returns.
    /// Whatever is asked later is refused.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.requests.send(Message::Close(done)).is_ok() {
            // An error says that the thread has ended: closed as well.
            let _ = closed.await;
        }
    }

    async fn start(settings: Settings) -> StoreResult<Self> {
        let (requests, receiver) = mpsc::channel();
        let path: Arc<Path> = settings.location.path.clone().into();
        let table: Arc<str> = settings.location.table.as_str().into();
        #[cfg(feature = "sqlite-transactions")]
        let clock = Arc::clone(&settings.clock);
        let (answer, opened) = oneshot::channel();
        std::thread::Builder::new()
            .name("idempotent-sqlite".into())
            .spawn(move || writer::run(settings, Queue::new(receiver), answer))
            .map_err(|error| {
                Fault::Unavailable(format!("no thread could be started: {error}")).into_open_error(&path)
            })?;
        let Ok(file) = opened.await else { return Err(ended(&path)) };
        #[cfg_attr(
            not(feature = "sqlite-transactions"),
            allow(unused_variables, reason = "only those need it")
        )]
        let file = file?;
        Ok(Self {
            requests,
            path,
            #[cfg(feature = "sqlite-transactions")]
            ground: Arc::new(ground::Ground::new(&table, clock, file)),
            table,
        })
    }

    /// Sends `operation` to the writer thread. If the caller goes away after that, it is done all the same, unless it
    /// would add a record and has not been begun.
    async fn ask<O: Operation>(&self, operation: O) -> StoreResult<O::Answer> {
        let (caller, answer) = oneshot::channel();
        let job = Box::new(Task { operation, answer: None, caller, path: Arc::clone(&self.path) });
        let waiting = Waiting { job, since: Instant::now() };
        if self.requests.send(Message::Job(waiting)).is_err() {
            let closed = Fault::Refused("the store has been closed".into());
            return Err(closed.into_error(&self.path, O::MAKES_RECORD));
        }
        answer.await.unwrap_or_else(|_| Err(ended(&self.path)))
    }
}

/// The error when an operation was dropped without an answer.
fn ended(path: &Path) -> StoreError {
    Fault::Unavailable("the writer thread ended before it had an answer".into()).into_open_error(path)
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn max_result_bytes(&self) -> Option<usize> {
        Some(MAX_RESULT_BYTES)
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        self.ask(reserve::ReserveKey::from(request)).await
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.ask(attempt::Renew { key: key.clone(), owner, lease, effects: false }).await
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.ask(attempt::Renew { key: key.clone(), owner, lease, effects: true }).await
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        self.ask(attempt::Complete { key: key.clone(), owner, settled: settled.clone(), keep }).await
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        self.ask(attempt::LetGo { key: key.clone(), owner, how }).await
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        self.ask(attempt::PutOne { key: key.clone(), owner, step: step.clone(), lease }).await
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.ask(admin::Load(key.clone())).await
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let resolution = resolution.clone();
        self.ask(admin::Resolve { key: key.clone(), seen, replacement, resolution }).await
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        self.ask(admin::Forget { key: key.clone(), seen }).await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.ask(admin::List(query.clone())).await
    }

    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.ask(admin::Purge { left: limit, purged: 0 }).await
    }

    #[cfg(feature = "sqlite-transactions")]
    fn transactional(&self) -> Option<crate::transaction::Transactional> {
        Some(crate::transaction::Transactional::sqlite(self.clone()))
    }
}
