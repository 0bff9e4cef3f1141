//! Calls in a transaction of the caller's: reserved and settled on the caller's connection, through sqlx.
//!
//! ```text
//! INSERT … ; SAVEPOINT idempotent_body_0
//! …the body…
//! RELEASE idempotent_body_0; UPDATE …
//! ```
//!
//! SQLite has one lock for everybody who writes to a file. The `INSERT` takes it, waiting for whoever has it, and from there
//! to the caller's `COMMIT` nobody else writes. So what is read after it cannot change.
//!
//! The savepoint is also the proof that the transaction is the one in which the call began: a body that ends it has lost the
//! savepoint, and its record is left as it is, which is unknown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::ffi;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Executor, Sqlite, SqliteConnection};

use super::SqliteStore;
use super::fault::Fault;
use super::ground::{Found, Texts, get, step};
use super::patience::Patience;
use super::row::Micros;
use super::schema;
use crate::store::{Grant, OwnerToken, Record, Settled, Step, StoreResult};
use crate::stores::sql::{encode, micros};
use crate::transaction::{Entered, Entry, Link, Trouble};

/// `SQLITE_BUSY_SNAPSHOT`: the transaction has read what somebody has changed since.
const BUSY_SNAPSHOT: i32 = 517;

/// A caller's connection, and the store whose file it should be in.
#[derive(Debug)]
pub(crate) struct SqliteLink<'c> {
    connection: &'c mut SqliteConnection,
    store: &'c SqliteStore,
}

impl<'c> SqliteLink<'c> {
    pub(crate) fn new(connection: &'c mut SqliteConnection, store: &'c SqliteStore) -> Self {
        Self { connection, store }
    }

    fn texts(&self) -> &'c Texts {
        &self.store.ground.texts
    }

    fn now(&self) -> Micros {
        self.store.ground.now()
    }

    async fn run(&mut self, text: String) -> Result<(), Fault> {
        self.connection.execute(sqlx::query(AssertSqlSafe(text))).await.map(drop).map_err(fault)
    }

    /// Runs a statement and says how many rows it has changed.
    async fn change(&mut self, query: Statement) -> Result<u64, Fault> {
        Ok(self.connection.execute(query).await.map_err(fault)?.rows_affected())
    }

    /// Whether there is a transaction. Nothing in SQLite says so but the refusal of a second one.
    async fn check_open(&mut self) -> Result<(), Trouble> {
        match self.run("BEGIN".into()).await {
            Err(fault) if fault.to_string().contains("within a transaction") => Ok(()),
            Err(fault) => Err(self.trouble(fault)),
            Ok(()) => {
                self.run("ROLLBACK".into()).await.map_err(|fault| self.trouble(fault))?;
                Err(Trouble::NotOpen)
            }
        }
    }

    /// Takes the lock, and adds a record if there is none. Its fence.
    async fn insert(&mut self, entry: &Entry<'_>) -> Result<Option<i64>, Trouble> {
        let begun = Instant::now();
        let patience = Patience::lend(self.connection, entry.wait).await;
        let patience = patience.map_err(|error| trouble(fault(error), self.store))?;
        let inserted = try_to_insert(patience.connection, self.store, entry).await;
        let ended = patience.end().await.map_err(fault);
        match inserted.and_then(|fence| ended.map(|()| fence)) {
            Err(fault) if fault.is_busy() && !is_stale(&fault) && begun.elapsed() >= entry.wait => {
                Err(Trouble::Busy)
            }
            inserted => inserted.map_err(|fault| self.trouble(fault)),
        }
    }

    /// Looks at the record in the way, and takes over from an attempt that is over where the policy allows. The lock is held.
    async fn look(&mut self, entry: &Entry<'_>) -> Result<Entered, Fault> {
        self.check_place().await?;
        let found = self.connection.fetch_optional(bound(&self.texts().record).bind(entry.key.as_str()));
        let Some(row) = found.await.map_err(fault)? else {
            return Err(Fault::Unavailable("the record was there and is gone".into()));
        };
        let (found, now) = (Found::new(row)?, self.now());
        if found.expires_at <= now {
            return self.replace(entry, &found).await;
        }
        let record = found.record(entry.key, self.steps(&found).await?, now)?;
        if !entry.may_follow(&record) {
            return Ok(Entered::Held { record, sees_changes: false });
        }
        if record.attempt >= entry.max_attempts {
            return self.exhaust(entry, record).await;
        }
        self.run(format!("SAVEPOINT {}", entry.call_point())).await?;
        let followed = self.follow(entry).await;
        if followed.is_err() {
            // The error is the one that counts.
            let _ = self.go_back(&entry.call_point()).await;
        }
        followed.map(Entered::Granted)
    }

    /// Whether the tables are those of the store.
    async fn check_place(&mut self) -> Result<(), Fault> {
        let place = self.connection.fetch_optional(bound(&self.texts().place)).await.map_err(fault)?;
        let Some(row) = place else { return Err(Fault::Refused("the tables have no version".into())) };
        schema::check_version(get(&row, 0, "version")?)?;
        let file: &str = get(&row, 1, "file")?;
        if self.store.ground.file.as_deref().is_some_and(|own| own != file) {
            let file = if file.is_empty() { "in memory" } else { file };
            return Err(Fault::Refused(format!(
                "the transaction is in another database than the store ({file}); open both on one file"
            )));
        }
        Ok(())
    }

    async fn steps(&mut self, found: &Found) -> Result<Vec<Step>, Fault> {
        if found.steps == 0 {
            return Ok(Vec::new());
        }
        let rows =
            self.connection.fetch_all(bound(&self.texts().steps).bind(found.id)).await.map_err(fault)?;
        rows.iter().map(step).collect()
    }

    /// A record of a new generation in place of an expired one.
    async fn replace(&mut self, entry: &Entry<'_>, old: &Found) -> Result<Entered, Fault> {
        let texts = self.texts();
        self.change(bound(&texts.outlive).bind(old.fence)).await?;
        self.change(bound(&texts.delete_steps).bind(old.id)).await?;
        self.change(bound(&texts.delete).bind(old.id)).await?;
        let fence = try_to_insert(self.connection, self.store, entry).await?;
        self.first(entry, fence.ok_or_else(|| Fault::Unavailable("the record came back".into()))?).await
    }

    /// The grant of a record that has just been added.
    async fn first(&mut self, entry: &Entry<'_>, fence: i64) -> Result<Entered, Fault> {
        self.run(format!("SAVEPOINT {}", entry.body_point())).await?;
        Ok(Entered::Granted(Grant { attempt: 1, fence: fence.unsigned_abs(), steps: Vec::new() }))
    }

    async fn follow(&mut self, entry: &Entry<'_>) -> Result<Grant, Fault> {
        let (now, expires) = self.ends(entry);
        let follow = bound(&self.texts().follow)
            .bind(entry.key.as_str())
            .bind(owner(entry.owner))
            .bind(None::<i64>)
            .bind(None::<i64>)
            .bind(None::<i64>)
            .bind(now)
            .bind(expires);
        let row = self.connection.fetch_one(follow).await.map_err(fault)?;
        self.run(format!("SAVEPOINT {}", entry.body_point())).await?;
        let attempt: i64 = get(&row, 0, "attempt")?;
        let fence: i64 = get(&row, 1, "fence")?;
        let attempt = attempt.try_into().map_err(|_| Fault::Unreadable("attempt"))?;
        Ok(Grant { attempt, fence: fence.unsigned_abs(), steps: Vec::new() })
    }

    /// There have been enough attempts: whoever comes is told that the outcome is unknown.
    async fn exhaust(&mut self, entry: &Entry<'_>, mut record: Record) -> Result<Entered, Fault> {
        let (_, expires) = self.ends(entry);
        let exhaust = bound(&self.texts().exhaust)
            .bind(entry.key.as_str())
            .bind(owner(OwnerToken::NOBODY))
            .bind(expires);
        self.change(exhaust).await?;
        record.owner = OwnerToken::NOBODY;
        record.state = crate::store::State::Settled(Settled::Unknown);
        Ok(Entered::Held { record, sees_changes: false })
    }

    /// Now, which is the end of a lease that nobody has, and the end of a record of which nothing more is heard.
    fn ends(&self, entry: &Entry<'_>) -> (Micros, Micros) {
        ends(self.store, entry)
    }

    /// Undoes what came after a savepoint, and forgets it.
    async fn go_back(&mut self, point: &str) -> Result<(), Fault> {
        self.run(format!("ROLLBACK TO {point}")).await?;
        self.run(format!("RELEASE {point}")).await
    }

    /// What it means that the savepoint of a call is not there: the body has ended the transaction, or SQLite has. If it was
    /// rolled back, nothing of the call is left.
    async fn lost_savepoint(&mut self, entry: &Entry<'_>, missing: Fault) -> Trouble {
        if !missing.to_string().contains("no such savepoint") {
            return self.trouble(missing);
        }
        let is_there = bound(&self.texts().is_there).bind(entry.key.as_str()).bind(owner(entry.owner));
        match self.connection.fetch_one(is_there).await.map_err(fault).and_then(|row| get(&row, 0, "count")) {
            Ok(0_i64) => Trouble::RolledBack(self.error(missing)),
            _ => Trouble::Ended,
        }
    }

    /// Makes sure that nothing of a transaction is committed whose record is not what it has to be.
    async fn poison(&mut self) {
        // If it fails, SQLite has done it already.
        let _ = self.run("ROLLBACK".into()).await;
    }

    fn error(&self, fault: Fault) -> crate::store::StoreError {
        fault.into_error(&self.store.path, true)
    }

    fn trouble(&self, fault: Fault) -> Trouble {
        trouble(fault, self.store)
    }
}

type Statement = Query<'static, Sqlite, SqliteArguments>;

fn bound(text: &Arc<str>) -> Statement {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

fn owner(owner: OwnerToken) -> Vec<u8> {
    owner.as_bytes().to_vec()
}

fn ends(store: &SqliteStore, entry: &Entry<'_>) -> (Micros, Micros) {
    let now = store.ground.now();
    (now, now.saturating_add(micros(entry.unknown_ttl)))
}

async fn try_to_insert(
    connection: &mut SqliteConnection,
    store: &SqliteStore,
    entry: &Entry<'_>,
) -> Result<Option<i64>, Fault> {
    let (now, expires) = ends(store, entry);
    let insert = bound(&store.ground.texts.insert)
        .bind(entry.key.as_str().to_owned())
        .bind(entry.key.operation().as_str().to_owned())
        .bind(owner(entry.owner))
        .bind(i64::from(entry.fingerprint.version()))
        .bind(entry.fingerprint.digest().to_vec())
        .bind(now)
        .bind(expires)
        .bind(store.ground.file.as_deref().map(str::to_owned));
    let row = connection.fetch_optional(insert).await.map_err(fault)?;
    row.map(|row| get(&row, 0, "fence")).transpose()
}

/// What sqlx says, as the store itself would have heard it.
fn fault(error: sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().and_then(|code| code.parse().ok()).unwrap_or(ffi::SQLITE_ERROR);
            rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(error.message().to_owned())).into()
        }
        error => Fault::Unavailable(error.to_string()),
    }
}

fn is_stale(fault: &Fault) -> bool {
    let Fault::Sql(error) = fault else { return false };
    matches!(&**error, rusqlite::Error::SqliteFailure(error, _) if error.extended_code == BUSY_SNAPSHOT)
}

/// A lock that was not waited for can only be had by another transaction: this one has read already.
fn trouble(fault: Fault, store: &SqliteStore) -> Trouble {
    let is_busy = fault.is_busy();
    let error = fault.into_error(&store.path, true);
    if is_busy { Trouble::Contended(error) } else { Trouble::Store(error) }
}

#[async_trait]
impl Link for SqliteLink<'_> {
    async fn enter(&mut self, entry: &Entry<'_>) -> Result<Entered, Trouble> {
        self.check_open().await?;
        let entered = match self.insert(entry).await? {
            Some(fence) => self.first(entry, fence).await,
            None => self.look(entry).await,
        };
        if entered.is_err() {
            // A record without its savepoint is of no use. The error is the one that counts.
            let _ = self
                .change(
                    bound(&self.texts().undo).bind(entry.key.as_str().to_owned()).bind(owner(entry.owner)),
                )
                .await;
        }
        entered.map_err(|fault| self.trouble(fault))
    }

    async fn settle(
        &mut self,
        entry: &Entry<'_>,
        attempt: u32,
        settled: &Settled,
        keep: Duration,
        undo: bool,
    ) -> Result<(), Trouble> {
        let body = entry.body_point();
        let left = if undo { self.go_back(&body).await } else { self.run(format!("RELEASE {body}")).await };
        if let Err(fault) = left {
            return Err(self.lost_savepoint(entry, fault).await);
        }
        let (state, version, result) = encode(settled);
        let settle = bound(&self.texts().settle)
            .bind(entry.key.as_str().to_owned())
            .bind(owner(entry.owner))
            .bind(state)
            .bind(version)
            .bind(result.map(<[u8]>::to_vec))
            .bind(self.now().saturating_add(micros(keep)));
        match self.change(settle).await {
            Ok(1) if attempt > 1 => {
                let released = self.run(format!("RELEASE {}", entry.call_point())).await;
                released.map_err(|fault| self.trouble(fault))
            }
            Ok(1) => Ok(()),
            changed => {
                self.poison().await;
                Err(changed.map_or_else(|fault| self.trouble(fault), |_| Trouble::Ended))
            }
        }
    }

    async fn undo(&mut self, entry: &Entry<'_>, attempt: u32) -> Result<(), Trouble> {
        let point = if attempt > 1 { entry.call_point() } else { entry.body_point() };
        if let Err(fault) = self.go_back(&point).await {
            return Err(self.lost_savepoint(entry, fault).await);
        }
        if attempt == 1 {
            let undo = bound(&self.texts().undo).bind(entry.key.as_str().to_owned()).bind(owner(entry.owner));
            self.change(undo).await.map_err(|fault| self.trouble(fault))?;
        }
        Ok(())
    }

    /// They are there since the store was opened; where they are not, it is another file.
    async fn make_table(&mut self) -> StoreResult<()> {
        Ok(())
    }
}
