//! A store in a MariaDB or MySQL database.

mod admin;
mod builder;
mod doctor;
mod fast;
mod fault;
mod ground;
mod routine;
mod row;
mod schema;
mod session;
mod steps;
mod transaction;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::MySqlPool;
use sqlx::mysql::MySqlArguments;
use tokio::sync::OnceCell;

use self::fast::FastTexts;
use self::fault::Fault;
use self::ground::Ground;
use self::routine::{Routine, Texts};
use self::row::{Said, token};
use self::schema::Server;
use self::session::bind;
use crate::doctor::Finding;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreResult, TakeOver, Write,
};
use crate::stores::sql::{Names, encode, micros};
use crate::transaction::Transactional;

pub use self::builder::MySqlStoreBuilder;
pub(crate) use self::transaction::MySqlLink;

/// What errors and events call this store.
const NAME: &str = "mysql";

/// What the rest of a packet takes that a result is sent or fetched in.
const PACKET_OVERHEAD: u64 = 16 * 1024;

/// In bytes.
const LONGEST_KEY: usize = 255;

/// So often a record that was in the way may be gone again before the store gives up for now.
const TRIES: usize = 10;

/// Keeps records in a table of a MariaDB or MySQL database, for all processes that reach it.
///
/// ```no_run
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_runtime::stores::MySqlStore;
///
/// let store = MySqlStore::connect("mariadb://shop@db.internal/shop").await?;
/// # Ok(()) }
/// ```
///
/// * **MariaDB since 10.5.** What the tests run on is 10.11. **MySQL 8** gets the same statements as stored procedures;
///   they keep to what its manual says, and the tests run them as procedures on MariaDB, but **no test has run on a
///   MySQL server**.
/// * **One round trip for an operation**, once a connection has prepared it; two for a take-over and what else needs a
///   closer look at a record that is there. The statements of an operation travel together and run on the server in one
///   transaction, which is over when the answer comes: no connection, transaction or lock is held while a body runs, or
///   by a caller who has gone away.
/// * **Replays neither lock nor write.** What a settled or living record answers is read without a lock.
/// * **The server's clock** judges leases and ttls, in microseconds, taken after the record is locked. Setting that clock
///   moves them; it never lets a stale owner write.
/// * **Durable as the server is.** A server that acknowledges commits before they are on the disk, or fails over to a
///   replica that lags, forgets reservations. [`examine`](Store::examine) says what it can find out about that.
/// * **Keys are bytes.** No collation makes two keys one.
/// * **Fences** grow with every grant, across generations too, as long as the server's clock is not set back between
///   the deletion of a record and its next generation, and no reservation stalls inside the server for longer than a
///   whole other call on its key takes.
/// * **Results** may be as long as the server's `max_allowed_packet`, less 16 KiB; all steps of a record together too.
/// * **Waiting is polling.** The server has no notifications.
/// * **What cannot be read is left alone.** It answers [`Unreadable`](crate::store::StoreErrorKind::Unreadable), and a list leaves it
///   out.
///
/// The statements are asked of the user's own pool, one connection for the time of one operation. A body that holds a
/// connection of the same pool needs a pool with one to spare. An operation whose caller goes away is seen to its end for
/// five seconds, so that its connection stays of use; then the connection is closed.
///
/// The pool's connections must keep prepared statements, as they do unless their `statement_cache_capacity` is 0. With
/// its `test_before_acquire`, which is sqlx's default, every operation costs a ping more; the store does not need it.
#[derive(Clone)]
pub struct MySqlStore(Arc<Inner>);

struct Inner {
    pool: MySqlPool,
    names: Names,
    /// Whether what is missing is made.
    create: bool,
    /// Whether procedures are used in any case.
    procedures: bool,
    familiar: OnceCell<Familiar>,
}

/// What the store knows of the server, from its first use on.
#[derive(Debug)]
struct Familiar {
    texts: Texts,
    /// Where statements commit by themselves.
    fast: Option<FastTexts>,
    ground: Ground,
    procedures: bool,
    max_result: usize,
}

impl MySqlStore {
    /// A store on the application's own pool, with the defaults. At its first use it looks at the server, and creates its
    /// table if that is missing.
    pub fn new(pool: MySqlPool) -> Self {
        let names = Names::new('`');
        Self(Arc::new(Inner { pool, names, create: true, procedures: false, familiar: OnceCell::new() }))
    }

    /// Connects to the server of a `mysql://` or `mariadb://` URL with the defaults, and creates the table if it is
    /// missing.
    ///
    /// # Errors
    /// Those of [`MySqlStoreBuilder::open`], and [`Refused`](crate::store::StoreErrorKind::Refused) when the URL is not
    /// one.
    pub async fn connect(url: &str) -> StoreResult<Self> {
        Self::builder(Self::pool_for(url)?).open().await
    }

    /// The pool that [`connect`](Self::connect) makes: at most ten connections, which are not tested before they are
    /// used, and whose statements are not logged. No connection is made yet.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when the URL is not one.
    pub fn pool_for(url: &str) -> StoreResult<MySqlPool> {
        Ok(builder::pool_for(url)?)
    }

    /// Sets up a store on a pool.
    pub fn builder(pool: MySqlPool) -> MySqlStoreBuilder {
        MySqlStoreBuilder::new(pool)
    }

    /// The pool.
    pub fn pool(&self) -> &MySqlPool {
        &self.0.pool
    }

    /// The name of the records table.
    pub fn table(&self) -> &str {
        self.0.names.table()
    }

    /// Looks at the server, unless that has been done: which one it is, and whether the table is there and ours.
    async fn familiar(&self) -> Result<&Familiar, Fault> {
        let Inner { pool, names, create, procedures, familiar } = &*self.0;
        let look = async || {
            let server = Server::ask(pool).await?;
            let procedures = *procedures || !server.prepares_blocks();
            schema::see_to(pool, names, procedures, *create).await?;
            let max_result = server.max_packet.saturating_sub(PACKET_OVERHEAD);
            Ok(Familiar {
                texts: Texts::new(names, procedures),
                fast: server.commits.then(|| FastTexts::new(names, !procedures)),
                ground: Ground::new(names, !procedures),
                procedures,
                max_result: usize::try_from(max_result).unwrap_or(usize::MAX),
            })
        };
        familiar.get_or_try_init(look).await
    }

    /// Runs `routine` on the record of `key`.
    async fn run(
        &self,
        routine: Routine,
        key: &RecordKey,
        arguments: impl FnOnce(&mut MySqlArguments) -> Result<(), Fault> + Send,
    ) -> Result<Said, Fault> {
        let mut all = MySqlArguments::default();
        bind(&mut all, key.as_str().as_bytes())?;
        arguments(&mut all)?;
        let text = self.familiar().await?.texts.of(routine);
        let rows = session::ask(&self.0.pool, &text, &all).await?;
        Said::decode(&rows, key)
    }

    async fn try_reserve(&self, request: &Reserve<'_>) -> Result<Said, Fault> {
        self.run(Routine::Reserve, request.key, |arguments| {
            bind(arguments, token(&request.owner))?;
            bind(arguments, request.key.operation().as_str().as_bytes())?;
            bind(arguments, request.fingerprint.version())?;
            bind(arguments, request.fingerprint.digest().as_slice())?;
            bind_lease(arguments, request.lease)?;
            bind(arguments, take_over(request.take_over))?;
            bind(arguments, i64::from(request.max_attempts))
        })
        .await
    }

    async fn extend(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        lease: Lease,
        mark: bool,
    ) -> StoreResult<Write> {
        if self.extend_fast(key, owner, lease, mark).await? {
            return Ok(Write::Applied);
        }
        let said = self.run(Routine::Renew, key, |arguments| {
            bind(arguments, token(&owner))?;
            bind_lease(arguments, lease)?;
            bind(arguments, i64::from(mark))
        });
        Ok(said.await?.write()?)
    }

    /// What an operator is told, after the record was changed or shown.
    fn compared(said: Said) -> Result<Compared, Fault> {
        match said {
            Said::Applied => Ok(Compared::Changed),
            Said::Nothing => Ok(Compared::Differs(None)),
            Said::Record(record) => Ok(Compared::Differs(Some(record))),
            _ => Err(Fault::Unreadable("answer")),
        }
    }
}

/// Keys and operations are columns of so many bytes. The server would say so too, but not to a statement that adds a row
/// only if there is none.
fn check_length(key: &RecordKey) -> Result<(), Fault> {
    if key.as_str().len() <= LONGEST_KEY && key.operation().len() <= LONGEST_KEY {
        return Ok(());
    }
    Err(Fault::Refused(format!("a key and an operation have at most {LONGEST_KEY} bytes")))
}

/// As the statements know it.
fn take_over(policy: TakeOver) -> i64 {
    match policy {
        TakeOver::BetweenSteps => 0,
        TakeOver::BeforeEffects => 1,
        TakeOver::Always => 2,
    }
}

fn bind_lease(arguments: &mut MySqlArguments, lease: Lease) -> Result<(), Fault> {
    bind(arguments, micros(lease.duration))?;
    bind(arguments, micros(lease.unknown_ttl))
}

fn bind_settled(arguments: &mut MySqlArguments, settled: Option<&Settled>) -> Result<(), Fault> {
    let (state, version, result) = match settled.map(encode) {
        Some((state, version, result)) => (Some(state), version, result),
        None => (None, None, None),
    };
    bind(arguments, state)?;
    bind(arguments, version)?;
    bind(arguments, result)
}

impl fmt::Debug for MySqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStore")
            .field("table", &self.table())
            .field("connections", &self.pool().size())
            .field("familiar", &self.0.familiar.get())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MySqlStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn max_result_bytes(&self) -> Option<usize> {
        self.0.familiar.get().map(|familiar| familiar.max_result)
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        check_length(request.key)?;
        if let Some(reserved) = self.reserve_fast(&request).await.map_err(|fault| fault.into_error(true))? {
            return Ok(reserved);
        }
        for _ in 0..TRIES {
            match self.try_reserve(&request).await.map_err(|fault| fault.into_error(true))? {
                Said::Granted(grant) => return Ok(Reserved::Granted(grant)),
                Said::Record(record) => return Ok(Reserved::Held(*record)),
                Said::Again => {}
                _ => return Err(Fault::Unreadable("answer").into()),
            }
        }
        Err(Fault::Unavailable("the record was made and deleted again and again").into())
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.extend(key, owner, lease, false).await
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.extend(key, owner, lease, true).await
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        if self.complete_fast(key, owner, settled, keep).await? {
            return Ok(Write::Applied);
        }
        let said = self.run(Routine::Complete, key, |arguments| {
            bind(arguments, token(&owner))?;
            bind_settled(arguments, Some(settled))?;
            bind(arguments, micros(keep))
        });
        Ok(said.await?.write()?)
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let said = self.run(Routine::Release, key, |arguments| {
            bind(arguments, token(&owner))?;
            bind(
                arguments,
                match how {
                    Release::Forget => 0_i64,
                    Release::Unused => 1,
                    Release::Abandon => 2,
                },
            )
        });
        Ok(said.await?.write()?)
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        let entry = steps::encode(step)
            .ok_or_else(|| Fault::Refused("the name or the result of a step is too long".into()))?;
        let said = self.run(Routine::PutStep, key, |arguments| {
            bind(arguments, token(&owner))?;
            bind(arguments, step.name.as_bytes())?;
            bind(arguments, entry)?;
            bind_lease(arguments, lease)
        });
        match said.await? {
            Said::Exists(result) => Ok(PutStep::Exists(result)),
            said => Ok(match said.write()? {
                Write::Applied => PutStep::Stored,
                Write::Lost => PutStep::Lost,
            }),
        }
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        Ok(self.load_record(key).await?)
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let (settled, keep) = match resolution {
            Resolution::Done { settled, keep } => (Some(settled), *keep),
            Resolution::NotDone => (None, Duration::ZERO),
        };
        let said = self.run(Routine::Resolve, key, |arguments| {
            bind(arguments, token(&seen))?;
            bind(arguments, token(&replacement))?;
            bind_settled(arguments, settled)?;
            bind(arguments, micros(keep))
        });
        Ok(Self::compared(said.await?)?)
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        let said = self.run(Routine::Forget, key, |arguments| bind(arguments, token(&seen)));
        Ok(Self::compared(said.await?)?)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        Ok(self.page(query).await?)
    }

    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        Ok(self.delete_expired(limit).await?)
    }

    async fn examine(&self) -> StoreResult<Vec<Finding>> {
        Ok(self.find_faults().await?)
    }

    fn transactional(&self) -> Option<Transactional> {
        Some(Transactional::mysql(self.clone()))
    }
}
