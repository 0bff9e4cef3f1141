//! Calls in a transaction of the caller's: reserved and settled on the caller's connection.
//!
//! ```text
//! SELECT … ; INSERT … ; SAVEPOINT idempotent_body_0
//! …the body…
//! RELEASE SAVEPOINT idempotent_body_0; UPDATE …
//! ```
//!
//! The `SELECT` locks nothing: what is seen to stand there costs neither a lock nor a write. The `INSERT` waits for whoever has
//! inserted the same key and not yet committed.
//!
//! The savepoint is also the proof that the transaction is the one in which the call began: a body that ends it, be it by a
//! statement that commits by itself, has lost the savepoint, and its record is left as it is, which is unknown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::mysql::{MySqlArguments, MySqlQueryResult, MySqlRow};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection};

use super::fault::Fault;
use super::ground::Ground;
use super::row::{get, record, token};
use super::session::bind;
use super::{Familiar, MySqlStore, NAME, bind_settled, check_length};
use crate::store::{Grant, OwnerToken, Record, Settled, State, StoreError, StoreErrorKind, StoreResult};
use crate::stores::sql::micros;
use crate::transaction::{Entered, Entry, Link, Trouble};

/// How often a record that comes and goes is looked for.
const TRIES: u32 = 10;

/// How long a call pauses that may not wait for a whole second, which is what the server measures waiting in.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the store may take to make itself familiar with the server.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// A caller's connection, and the store.
#[derive(Debug)]
pub(crate) struct MySqlLink<'c> {
    connection: &'c mut MySqlConnection,
    store: &'c MySqlStore,
}

/// What is seen without a lock.
struct Seen {
    /// Whether there is a transaction.
    open: bool,
    /// Whether it sees what others commit.
    sees_changes: bool,
    is_there: bool,
    /// What is there, if that is certain.
    record: Option<Record>,
}

impl Seen {
    const NOT_OPEN: Self = Self { open: false, sees_changes: false, is_there: false, record: None };
}

/// What became of one try to enter.
enum Try {
    Entered(Entered),
    /// The record changed meanwhile.
    Again,
}

impl<'c> MySqlLink<'c> {
    pub(crate) fn new(connection: &'c mut MySqlConnection, store: &'c MySqlStore) -> Self {
        Self { connection, store }
    }

    /// What the store knows of the server. At its first use it asks, on a connection of its own.
    async fn familiar(&self) -> Result<&'c Familiar, Trouble> {
        let known = tokio::time::timeout(INTRODUCTION, self.store.familiar()).await;
        let unavailable = |elapsed| StoreError::new(NAME, StoreErrorKind::Unavailable, elapsed);
        known.map_err(|elapsed| Trouble::Store(unavailable(elapsed)))?.map_err(trouble)
    }

    async fn run(&mut self, text: String) -> Result<(), Fault> {
        Ok(self.connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.map(drop)?)
    }

    async fn change(
        &mut self,
        text: &Arc<str>,
        arguments: MySqlArguments,
    ) -> Result<MySqlQueryResult, Fault> {
        Ok(self.connection.execute(sqlx::query_with(AssertSqlSafe(Arc::clone(text)), arguments)).await?)
    }

    async fn ask(&mut self, text: &Arc<str>, arguments: MySqlArguments) -> Result<Option<MySqlRow>, Fault> {
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(text)), arguments);
        Ok(self.connection.fetch_optional(query).await?)
    }

    /// The isolation level of the session, if there is a transaction. Outside of one, a savepoint is gone with its statement.
    async fn open_level(&mut self) -> Result<Option<String>, Fault> {
        let asked = "SAVEPOINT idempotent_open; RELEASE SAVEPOINT idempotent_open; \
                     SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')";
        match self.connection.fetch_all(sqlx::raw_sql(asked)).await.map_err(Fault::from) {
            Ok(rows) => rows.first().map(|row| get(row, 1, "variable")).transpose(),
            Err(fault) if fault.is_missing_savepoint() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Looks without a lock. Where what others have not committed can be seen, that tells nothing.
    async fn look(&mut self, entry: &Entry<'_>, ground: &Ground) -> Result<Seen, Fault> {
        let asked = if ground.maria { Some(String::new()) } else { self.open_level().await? };
        let Some(asked) = asked else { return Ok(Seen::NOT_OPEN) };
        let row = self.ask(&ground.look, with_key(entry)?).await?.ok_or(Fault::Unreadable("answer"))?;
        let is = |index| get::<i64>(&row, index, "answer").map(|is| is != 0);
        if !is(15)? {
            return Ok(Seen::NOT_OPEN);
        }
        let level = if ground.maria { get(&row, 16, "answer")? } else { asked };
        let is_there = is(17)?;
        let record = (is_there && level != "READ-UNCOMMITTED").then(|| record(&row, entry.key.clone()));
        let sees_changes = level == "READ-COMMITTED";
        Ok(Seen { open: true, sees_changes, is_there, record: record.transpose()? })
    }

    async fn try_to_enter(&mut self, entry: &Entry<'_>, seen: Seen, ground: &Ground) -> Result<Try, Fault> {
        let wait = seconds(entry.wait);
        if let Some(record) = seen.record.filter(stands) {
            return Ok(Try::Entered(Entered::Held { record, sees_changes: seen.sees_changes }));
        }
        if !seen.is_there {
            let mut arguments = with_key(entry)?;
            bind(&mut arguments, entry.key.operation().as_str().as_bytes())?;
            bind_attempt(&mut arguments, entry)?;
            let insert = self.waiting(wait, &ground.insert, ground).await?;
            let inserted = self.change(&insert, arguments).await;
            let fence = self.waited(inserted, ground).await?.last_insert_id();
            if fence > 0 {
                return self.first(entry, fence).await;
            }
        }
        self.enter_locked(entry, wait, ground).await
    }

    /// Looks at the record in the way with its lock, and takes its place where it is over.
    async fn enter_locked(&mut self, entry: &Entry<'_>, wait: u64, ground: &Ground) -> Result<Try, Fault> {
        let lock = self.waiting(wait, &ground.lock, ground).await?;
        let locked = self.ask(&lock, with_key(entry)?).await;
        let Some(row) = self.waited(locked, ground).await? else { return Ok(Try::Again) };
        let mut record = record(&row, entry.key.clone())?;
        if record.expires_in.is_zero() {
            let mut arguments = MySqlArguments::default();
            bind(&mut arguments, entry.key.operation().as_str().as_bytes())?;
            bind_attempt(&mut arguments, entry)?;
            bind(&mut arguments, entry.key.as_str().as_bytes())?;
            let replaced = self.change(&ground.replace, arguments).await?;
            return self.first(entry, replaced.last_insert_id()).await;
        }
        if entry.may_follow(&record) {
            if record.attempt < entry.max_attempts {
                return self.follow(entry, &record, ground).await;
            }
            self.change(&ground.exhaust, owner_and_key(entry, OwnerToken::NOBODY)?).await?;
            record.owner = OwnerToken::NOBODY;
            record.state = State::Settled(Settled::Unknown);
        }
        // Others wait for this transaction now, so it does not wait for them.
        Ok(Try::Entered(Entered::Held { record, sees_changes: false }))
    }

    /// The grant of a record of a new generation.
    async fn first(&mut self, entry: &Entry<'_>, fence: u64) -> Result<Try, Fault> {
        self.run(format!("SAVEPOINT {}", entry.body_point())).await?;
        Ok(Try::Entered(Entered::Granted(Grant { attempt: 1, fence, steps: Vec::new() })))
    }

    async fn follow(&mut self, entry: &Entry<'_>, before: &Record, ground: &Ground) -> Result<Try, Fault> {
        self.run(format!("SAVEPOINT {}", entry.call_point())).await?;
        let followed = async {
            let followed = self.change(&ground.follow, owner_and_key(entry, entry.owner)?).await?;
            self.run(format!("SAVEPOINT {}", entry.body_point())).await?;
            Ok(followed)
        };
        let followed = match followed.await {
            Ok(followed) => followed,
            Err(fault) => {
                // The error is the one that counts.
                let _ = self.go_back(&entry.call_point()).await;
                return Err(fault);
            }
        };
        let attempt = before.attempt.saturating_add(1);
        let grant = Grant { attempt, fence: followed.last_insert_id(), steps: Vec::new() };
        Ok(Try::Entered(Entered::Granted(grant)))
    }

    /// The statement `text`, as one that waits for locks for so many seconds and no longer. [`waited`](Self::waited) follows.
    async fn waiting(&mut self, seconds: u64, text: &Arc<str>, ground: &Ground) -> Result<Arc<str>, Fault> {
        if ground.maria {
            return Ok(format!("SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR {text}").into());
        }
        // Zero is not among the values that MySQL takes. If the call is dropped, the next one finds what there was.
        self.run(format!(
            "SET @idempotent_wait = COALESCE(@idempotent_wait, @@innodb_lock_wait_timeout); \
             SET innodb_lock_wait_timeout = {}",
            seconds.max(1)
        ))
        .await?;
        Ok(Arc::clone(text))
    }

    /// Gives the connection its own time for locks again. The error of the statement is the one that counts.
    async fn waited<T>(&mut self, answer: Result<T, Fault>, ground: &Ground) -> Result<T, Fault> {
        if ground.maria {
            return answer;
        }
        let own =
            "SET innodb_lock_wait_timeout = CAST(@idempotent_wait AS SIGNED); SET @idempotent_wait = NULL";
        let ended = self.run(own.into()).await;
        answer.and_then(|answer| ended.map(|()| answer))
    }

    /// Undoes what came after a savepoint, and forgets it.
    async fn go_back(&mut self, point: &str) -> Result<(), Fault> {
        self.run(format!("ROLLBACK TO SAVEPOINT {point}; RELEASE SAVEPOINT {point}")).await
    }

    /// What it means that the savepoint of a call is not there: the body has ended the transaction, or the server has, as it
    /// does after a deadlock. If it was rolled back, nothing of the call is left.
    async fn lost_savepoint(&mut self, entry: &Entry<'_>, missing: Fault, ground: &Ground) -> Trouble {
        if !missing.is_missing_savepoint() {
            return trouble(missing);
        }
        let count = async {
            let row = self.ask(&ground.is_there, key_and_owner(entry)?).await?;
            get::<i64>(&row.ok_or(Fault::Unreadable("answer"))?, 0, "answer")
        };
        match count.await {
            Ok(0) => Trouble::RolledBack(missing.into_error(true)),
            _ => Trouble::Ended,
        }
    }
}

/// Whether a record is in the way for certain. One whose lease is over may be that of a call that has not yet committed, or be
/// followed.
fn stands(record: &Record) -> bool {
    let is_over = matches!(record.state, State::Running { lease_left, .. } if lease_left.is_zero());
    !(is_over || record.expires_in.is_zero())
}

/// How many seconds the server may wait. Few different ones, since each is a statement that the connection keeps.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs().checked_ilog2().map_or(0, |power| 1 << power)
}

fn with_key(entry: &Entry<'_>) -> Result<MySqlArguments, Fault> {
    let mut arguments = MySqlArguments::default();
    bind(&mut arguments, entry.key.as_str().as_bytes())?;
    Ok(arguments)
}

fn key_and_owner(entry: &Entry<'_>) -> Result<MySqlArguments, Fault> {
    let mut arguments = with_key(entry)?;
    bind(&mut arguments, token(&entry.owner))?;
    Ok(arguments)
}

/// What makes another attempt of a record: its owner and how long it is remembered.
fn owner_and_key(entry: &Entry<'_>, owner: OwnerToken) -> Result<MySqlArguments, Fault> {
    let mut arguments = MySqlArguments::default();
    bind(&mut arguments, token(&owner))?;
    bind(&mut arguments, micros(entry.unknown_ttl))?;
    bind(&mut arguments, entry.key.as_str().as_bytes())?;
    Ok(arguments)
}

/// What makes a first attempt: its owner, its fingerprint and how long it is remembered.
fn bind_attempt(arguments: &mut MySqlArguments, entry: &Entry<'_>) -> Result<(), Fault> {
    bind(arguments, token(&entry.owner))?;
    bind(arguments, entry.fingerprint.version())?;
    bind(arguments, entry.fingerprint.digest().as_slice())?;
    bind(arguments, micros(entry.unknown_ttl))
}

fn trouble(fault: Fault) -> Trouble {
    let (contended, no_table) = (fault.is_collision(), fault.is_missing_table());
    let error = fault.into_error(true);
    match () {
        () if contended => Trouble::Contended(error),
        () if no_table => Trouble::NoTable(error),
        () => Trouble::Store(error),
    }
}

#[async_trait]
impl Link for MySqlLink<'_> {
    async fn enter(&mut self, entry: &Entry<'_>) -> Result<Entered, Trouble> {
        check_length(entry.key).map_err(trouble)?;
        let ground = &self.familiar().await?.ground;
        let asked_at = Instant::now();
        let (mut tries, mut waited) = (0, None);
        while tries < TRIES {
            let seen = self.look(entry, ground).await.map_err(trouble)?;
            if !seen.open {
                // A server can be set to give a transaction up that has waited in vain.
                return Err(waited.map_or(Trouble::NotOpen, Trouble::Contended));
            }
            let left = Entry { wait: entry.wait.saturating_sub(asked_at.elapsed()), ..*entry };
            match self.try_to_enter(&left, seen, ground).await {
                Ok(Try::Entered(entered)) => return Ok(entered),
                Ok(Try::Again) => tries += 1,
                Err(fault) if fault.is_lock_timeout() => {
                    if asked_at.elapsed() >= entry.wait {
                        return Err(Trouble::Busy);
                    }
                    waited = Some(fault.into_error(true));
                    if seconds(left.wait) == 0 {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                Err(fault) => {
                    // A record without its savepoint is of no use. The error is the one that counts.
                    if let Ok(arguments) = key_and_owner(entry) {
                        let _ = self.change(&ground.undo, arguments).await;
                    }
                    return Err(trouble(fault));
                }
            }
        }
        let fault = Fault::Unavailable("the record was made and deleted again and again");
        Err(Trouble::Contended(fault.into_error(true)))
    }

    async fn settle(
        &mut self,
        entry: &Entry<'_>,
        attempt: u32,
        settled: &Settled,
        keep: Duration,
        undo: bool,
    ) -> Result<(), Trouble> {
        let ground = &self.familiar().await?.ground;
        let body = entry.body_point();
        let left = if undo {
            self.go_back(&body).await
        } else {
            self.run(format!("RELEASE SAVEPOINT {body}")).await
        };
        if let Err(fault) = left {
            return Err(self.lost_savepoint(entry, fault, ground).await);
        }
        let mut arguments = MySqlArguments::default();
        let bound = bind_settled(&mut arguments, Some(settled))
            .and_then(|()| bind(&mut arguments, micros(keep)))
            .and_then(|()| bind(&mut arguments, entry.key.as_str().as_bytes()))
            .and_then(|()| bind(&mut arguments, token(&entry.owner)));
        let changed = match bound {
            Ok(()) => self.change(&ground.settle, arguments).await,
            Err(fault) => Err(fault),
        };
        match changed.map(|changed| changed.rows_affected()) {
            Ok(1) if attempt > 1 => {
                self.run(format!("RELEASE SAVEPOINT {}", entry.call_point())).await.map_err(trouble)
            }
            Ok(1) => Ok(()),
            changed => {
                // Nothing of a transaction may be committed whose record is not what it has to be.
                let _ = self.run("ROLLBACK".into()).await;
                Err(changed.map_or_else(trouble, |_| Trouble::Ended))
            }
        }
    }

    async fn undo(&mut self, entry: &Entry<'_>, attempt: u32) -> Result<(), Trouble> {
        let ground = &self.familiar().await?.ground;
        let point = if attempt > 1 { entry.call_point() } else { entry.body_point() };
        if let Err(fault) = self.go_back(&point).await {
            return Err(self.lost_savepoint(entry, fault, ground).await);
        }
        if attempt == 1 {
            let arguments = key_and_owner(entry).map_err(trouble)?;
            self.change(&ground.undo, arguments).await.map_err(trouble)?;
        }
        Ok(())
    }

    /// Making itself familiar with the server, the store has seen to its table.
    async fn make_table(&mut self) -> StoreResult<()> {
        Ok(())
    }
}
