//! One connection in use: its prepared statements, its clock, and the reads that every operation begins with.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::fault::Fault;
use super::row::{self, Micros, Row};
use super::schema;
use crate::key::RecordKey;
use crate::store::{Record, Step};
use crate::stores::Clock;

/// The statements, by what they do. Their text is in [`text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Query {
    BeginRead,
    BeginWrite,
    Commit,
    Rollback,
    Savepoint,
    Release,
    RollbackTo,
    Meta,
    SetFence,
    ByKey,
    ById,
    Steps,
    Insert,
    Grant,
    Lease,
    Settle,
    Abandon,
    Reopen,
    Delete,
    DeleteSteps,
    DeleteBegunSteps,
    PutStep,
    CountSteps,
    Scan,
    ScanOperation,
    PurgeFence,
    PurgeSteps,
    Purge,
}

/// What `query` says on the tables called after `table`.
fn text(query: Query, table: &str) -> String {
    use row::COLUMNS;
    let expired = format!(
        "SELECT id FROM \"{table}\" WHERE expires_at <= ?1 \
         AND state IN ('running', 'completed', 'failed', 'not_retained', 'unknown') AND typeof(fence) = 'integer' \
         ORDER BY expires_at LIMIT ?2"
    );
    // Of a damaged row it may not be known; then it is wanted, and counted as one that cannot be read.
    let wanted = "coalesce(expires_at > ?3 AND (?4 IS NULL OR state = ?4) \
         AND (NOT ?5 OR state = 'unknown' OR (state = 'running' AND lease_until <= ?3)), 1)";
    match query {
        Query::BeginRead => "BEGIN DEFERRED".into(),
        Query::BeginWrite => "BEGIN IMMEDIATE".into(),
        Query::Commit => "COMMIT".into(),
        Query::Rollback => "ROLLBACK".into(),
        Query::Savepoint => "SAVEPOINT idempotent".into(),
        Query::Release => "RELEASE idempotent".into(),
        Query::RollbackTo => "ROLLBACK TO idempotent".into(),
        Query::Meta => {
            format!(
                "SELECT version, fence, (SELECT coalesce(max(id), 0) FROM \"{table}\") FROM \"{table}_meta\""
            )
        }
        Query::SetFence => format!("UPDATE \"{table}_meta\" SET fence = ?1"),
        Query::ByKey => format!("SELECT {COLUMNS} FROM \"{table}\" WHERE key = ?1"),
        Query::ById => format!("SELECT {COLUMNS} FROM \"{table}\" WHERE id = ?1"),
        Query::Steps => {
            format!("SELECT name, state, result FROM \"{table}_steps\" WHERE record = ?1 ORDER BY position")
        }
        Query::Insert => format!(
            "INSERT INTO \"{table}\" (id, key, operation, state, owner, attempt, fence, fingerprint_version, \
             fingerprint, lease_until, created_at, expires_at) \
             VALUES (?4, ?1, ?2, 'running', ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9)"
        ),
        Query::Grant => format!(
            "UPDATE \"{table}\" SET owner = ?2, attempt = ?3, fence = ?4, lease_until = ?5, expires_at = ?6 \
             WHERE id = ?1"
        ),
        Query::Lease => format!(
            "UPDATE \"{table}\" SET lease_until = ?2, expires_at = ?3, \
             effects_begun = max(effects_begun, ?4) WHERE id = ?1"
        ),
        Query::Settle => format!(
            "UPDATE \"{table}\" SET owner = ?2, state = ?3, result_version = ?4, result = ?5, expires_at = ?6, \
             lease_until = NULL, steps = ?7 WHERE id = ?1"
        ),
        Query::Abandon => {
            format!(
                "UPDATE \"{table}\" SET lease_until = ?2, expires_at = ?3, attempt = ?4, owner = ?5 WHERE id = ?1"
            )
        }
        Query::Reopen => format!(
            "UPDATE \"{table}\" SET owner = ?2, state = 'running', attempt = ?3, effects_begun = 0, \
             lease_until = ?4, expires_at = ?5, steps = ?6 WHERE id = ?1"
        ),
        Query::Delete => format!("DELETE FROM \"{table}\" WHERE id = ?1"),
        Query::DeleteSteps => format!("DELETE FROM \"{table}_steps\" WHERE record = ?1"),
        Query::DeleteBegunSteps => {
            format!("DELETE FROM \"{table}_steps\" WHERE record = ?1 AND state = 'begun'")
        }
        Query::PutStep => format!(
            "INSERT INTO \"{table}_steps\" (record, name, position, state, result) VALUES (?1, ?2, \
             (SELECT coalesce(max(position), 0) + 1 FROM \"{table}_steps\" WHERE record = ?1), ?3, ?4) \
             ON CONFLICT (record, name) DO UPDATE SET state = excluded.state, result = excluded.result"
        ),
        Query::CountSteps => format!("UPDATE \"{table}\" SET steps = steps + 1 WHERE id = ?1"),
        Query::Scan => {
            format!("SELECT id, {wanted} FROM \"{table}\" WHERE id > ?1 ORDER BY id LIMIT ?2")
        }
        Query::ScanOperation => format!(
            "SELECT id, {wanted} FROM \"{table}\" WHERE operation = ?6 AND id > ?1 ORDER BY id LIMIT ?2"
        ),
        Query::PurgeFence => {
            format!("SELECT coalesce(max(fence), 0) FROM \"{table}\" WHERE id IN ({expired})")
        }
        Query::PurgeSteps => format!("DELETE FROM \"{table}_steps\" WHERE record IN ({expired})"),
        Query::Purge => format!("DELETE FROM \"{table}\" WHERE id IN ({expired})"),
    }
}

/// One connection in use by the writer thread.
///
/// The statements are kept here and not in rusqlite's cache, which is a feature in some of the versions that the
/// crate works with and not in others.
#[derive(Debug)]
pub(super) struct Session<'c> {
    connection: &'c Connection,
    table: &'c str,
    clock: &'c dyn Clock,
    statements: HashMap<Query, Statement<'c>>,
    /// No fence and no id of this transaction may be as low as this.
    fence: i64,
    /// The greatest fence of all deleted records, and what of that is written down.
    deleted: i64,
    written: i64,
}

impl<'c> Session<'c> {
    pub(super) fn new(connection: &'c Connection, table: &'c str, clock: &'c dyn Clock) -> Self {
        Self { connection, table, clock, statements: HashMap::new(), fence: 0, deleted: 0, written: 0 }
    }

    /// The statement, prepared at its first use.
    pub(super) fn statement(&mut self, query: Query) -> Result<&mut Statement<'c>, Fault> {
        match self.statements.entry(query) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(self.connection.prepare(&text(query, self.table))?)),
        }
    }

    pub(super) fn execute(&mut self, query: Query, params: impl rusqlite::Params) -> Result<usize, Fault> {
        Ok(self.statement(query)?.execute(params)?)
    }

    /// The time now. Asked for after the row was read, so that no lease is judged by a time before it was written.
    pub(super) fn now(&self) -> Micros {
        Micros::try_from(self.clock.now().as_micros()).unwrap_or(Micros::MAX)
    }

    /// Whether a transaction is open. SQLite ends one by itself on some errors.
    pub(super) fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Begins to read; the snapshot is taken by the first statement.
    pub(super) fn begin_read(&mut self) -> Result<(), Fault> {
        self.execute(Query::BeginRead, [])?;
        Ok(())
    }

    /// Takes the write lock, then looks whether the tables are still the ones that this version writes.
    pub(super) fn begin_write(&mut self) -> Result<(), Fault> {
        self.execute(Query::BeginWrite, [])?;
        let (version, deleted, newest): (i64, i64, i64) =
            self.statement(Query::Meta)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        schema::check_version(version)?;
        self.fence = deleted.max(newest);
        self.deleted = deleted;
        self.written = deleted;
        Ok(())
    }

    /// Writes down the greatest fence that was deleted, and commits.
    pub(super) fn commit(&mut self) -> Result<(), Fault> {
        if self.deleted != self.written {
            self.execute(Query::SetFence, [self.deleted])?;
            self.written = self.deleted;
        }
        self.execute(Query::Commit, [])?;
        Ok(())
    }

    /// Ends whatever transaction is open, as far as that is possible.
    pub(super) fn rollback(&mut self) {
        if self.in_transaction()
            && let Err(fault) = self.execute(Query::Rollback, [])
        {
            tracing::warn!(target: "idempotent", %fault, "the SQLite store could not roll back");
        }
    }

    /// Runs the several writes of one operation so that all of them happen or none, and the operations beside it in
    /// the same transaction stay as they are.
    pub(super) fn atomically<T>(
        &mut self,
        writes: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.execute(Query::Savepoint, [])?;
        let done = writes(self);
        if done.is_err() && self.in_transaction() {
            self.execute(Query::RollbackTo, [])?;
        }
        if self.in_transaction() {
            self.execute(Query::Release, [])?;
        }
        done
    }

    /// A fence greater than `old`, than every id, and than every fence of a deleted record, also when the clock stands
    /// still or goes back.
    ///
    /// The fence of a new record is its id too. So an id is never used twice, which keeps the steps of a record that
    /// somebody deleted by hand out of a later one, and ids go by creation.
    pub(super) fn next_fence(&mut self, old: i64, now: Micros) -> i64 {
        self.fence = self.fence.max(old).saturating_add(1).max(now);
        self.fence
    }

    /// Remembers that a record with this fence is deleted, for the one that comes after it under its key.
    pub(super) fn outlive(&mut self, fence: i64) {
        self.deleted = self.deleted.max(fence);
        self.fence = self.fence.max(fence);
    }

    /// The row of `key`, expired or not.
    pub(super) fn row(&mut self, key: &RecordKey) -> Result<Option<Row>, Fault> {
        let row =
            self.statement(Query::ByKey)?.query_row([key.as_str()], |row| Ok(Row::decode(row))).optional()?;
        row.transpose()
    }

    /// The row of `key` and the time, if there is one that has not expired.
    pub(super) fn current(&mut self, key: &RecordKey) -> Result<Option<(Row, Micros)>, Fault> {
        let row = self.row(key)?;
        let now = self.now();
        Ok(row.filter(|row| row.expires_at > now).map(|row| (row, now)))
    }

    /// The row with this `id`, with its key.
    pub(super) fn row_by_id(&mut self, id: i64) -> Result<Option<(RecordKey, Row)>, Fault> {
        let row = self
            .statement(Query::ById)?
            .query_row([id], |row| Ok(Row::key(row).and_then(|key| Ok((key, Row::decode(row)?)))))
            .optional()?;
        row.transpose()
    }

    /// The steps of `row`, in the order in which they were first written.
    pub(super) fn steps(&mut self, row: &Row) -> Result<Vec<Step>, Fault> {
        if row.steps == 0 {
            return Ok(Vec::new());
        }
        let mut rows = self.statement(Query::Steps)?.query([row.id])?;
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            steps.push(row::decode_step(row)?);
        }
        Ok(steps)
    }

    /// The record that `row` is.
    pub(super) fn record(&mut self, key: &RecordKey, row: Row, now: Micros) -> Result<Record, Fault> {
        let steps = self.steps(&row)?;
        Ok(row.into_record(key.clone(), steps, now))
    }

    /// Deletes `row` and its steps.
    pub(super) fn delete(&mut self, row: &Row) -> Result<(), Fault> {
        self.outlive(row.fence);
        if row.steps == 0 {
            self.execute(Query::Delete, [row.id])?;
            return Ok(());
        }
        self.atomically(|session| {
            session.execute(Query::DeleteSteps, [row.id])?;
            session.execute(Query::Delete, [row.id])?;
            Ok(())
        })
    }

    /// Writes the end of the lease of `row`, and of its record.
    pub(super) fn set_lease(
        &mut self,
        row: &Row,
        until: Micros,
        expires: Micros,
        effects_begun: bool,
    ) -> Result<(), Fault> {
        self.execute(Query::Lease, params![row.id, until, expires, effects_begun])?;
        Ok(())
    }
}
