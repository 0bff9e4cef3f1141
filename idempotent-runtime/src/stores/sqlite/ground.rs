//! What calls in a transaction of the caller's need of the store: its statements, its clock, and which file it is in.

use std::sync::Arc;

use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};

use super::fault::Fault;
use super::row::Micros;
use super::writer::FileName;
use crate::key::RecordKey;
use crate::store::{Record, Step, StepState};
use crate::stores::Clock;
use crate::stores::sql::RawRecord;

/// Made once for a store.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) clock: Arc<dyn Clock>,
    /// What SQLite calls the store's file; `None` when that is not text, and then it is not compared.
    pub(super) file: FileName,
    pub(super) texts: Texts,
}

impl Ground {
    pub(super) fn new(table: &str, clock: Arc<dyn Clock>, file: FileName) -> Self {
        Self { clock, file, texts: Texts::new(table) }
    }

    pub(super) fn now(&self) -> Micros {
        Micros::try_from(self.clock.now().as_micros()).unwrap_or(Micros::MAX)
    }
}

/// The statements, on tables whose name has been checked.
#[derive(Debug)]
pub(super) struct Texts {
    /// Adds a record if there is none, and gives its fence; also takes the lock. The record is running with its lease over
    /// and its effects begun: what the caller sees committed if the call is dropped and the transaction goes on.
    pub(super) insert: Arc<str>,
    /// The version of the tables, and the file that they are in.
    pub(super) place: Arc<str>,
    pub(super) record: Arc<str>,
    pub(super) steps: Arc<str>,
    /// What becomes of an expired record, one after the other: its fence is remembered, then it is deleted.
    pub(super) outlive: Arc<str>,
    pub(super) delete_steps: Arc<str>,
    pub(super) delete: Arc<str>,
    pub(super) follow: Arc<str>,
    pub(super) exhaust: Arc<str>,
    pub(super) settle: Arc<str>,
    /// Deletes the record of a first attempt.
    pub(super) undo: Arc<str>,
    pub(super) is_there: Arc<str>,
}

impl Texts {
    fn new(table: &str) -> Self {
        let render = |text: &str| -> Arc<str> {
            text.replace("{fence}", FENCE)
                .replace("{file}", FILE)
                .replace("{table}", &format!("\"{table}\""))
                .replace("{steps}", &format!("\"{table}_steps\""))
                .replace("{meta}", &format!("\"{table}_meta\""))
                .into()
        };
        Self {
            insert: render(
                "INSERT INTO {table} (id, key, operation, state, owner, attempt, fence, fingerprint_version, \
                 fingerprint, effects_begun, lease_until, created_at, expires_at) \
                 SELECT {fence}, ?1, ?2, 'running', ?3, 1, {fence}, ?4, ?5, 1, ?6, ?6, ?7 FROM {meta} AS m \
                 WHERE m.version = 1 AND (?8 IS NULL OR {file} = ?8) \
                 ON CONFLICT (key) DO NOTHING RETURNING fence",
            ),
            place: render("SELECT version, {file} FROM {meta}"),
            record: render(
                "SELECT id, state, owner, attempt, fence, fingerprint_version, fingerprint, effects_begun, \
                 lease_until, created_at, expires_at, result_version, result, steps FROM {table} WHERE key = ?1",
            ),
            steps: render("SELECT name, state, result FROM {steps} WHERE record = ?1 ORDER BY position"),
            outlive: render("UPDATE {meta} SET fence = max(fence, ?1)"),
            delete_steps: render("DELETE FROM {steps} WHERE record = ?1"),
            delete: render("DELETE FROM {table} WHERE id = ?1"),
            follow: render(
                "UPDATE {table} SET owner = ?2, attempt = attempt + 1, effects_begun = 1, lease_until = ?6, \
                 expires_at = ?7, fence = max(fence + 1, (SELECT {fence} FROM {meta} AS m)) WHERE key = ?1 \
                 RETURNING attempt, fence",
            ),
            exhaust: render(
                "UPDATE {table} SET owner = ?2, state = 'unknown', lease_until = NULL, expires_at = ?3 \
                 WHERE key = ?1",
            ),
            settle: render(
                "UPDATE {table} SET state = ?3, result_version = ?4, result = ?5, lease_until = NULL, \
                 expires_at = ?6 WHERE key = ?1 AND owner = ?2 AND state = 'running'",
            ),
            undo: render(
                "DELETE FROM {table} WHERE key = ?1 AND owner = ?2 AND attempt = 1 AND state = 'running'",
            ),
            is_there: render("SELECT count(*) FROM {table} WHERE key = ?1 AND owner = ?2"),
        }
    }
}

/// A fence greater than that of every record, deleted ones too, also when the clock (`?6`) stands still or goes back. A record's
/// id is its first fence, and a later one of its own is considered where there is one.
const FENCE: &str = "max(m.fence + 1, coalesce((SELECT max(id) FROM {table}), 0) + 1, ?6)";

/// What SQLite calls the main file of a connection.
const FILE: &str = "(SELECT file FROM pragma_database_list WHERE name = 'main')";

/// A row of the records table.
pub(super) struct Found {
    row: SqliteRow,
    pub(super) id: i64,
    pub(super) fence: i64,
    pub(super) expires_at: Micros,
    /// How many steps it has.
    pub(super) steps: i64,
}

impl Found {
    pub(super) fn new(row: SqliteRow) -> Result<Self, Fault> {
        Ok(Self {
            id: get(&row, 0, "id")?,
            fence: get(&row, 4, "fence")?,
            expires_at: get(&row, 10, "expires_at")?,
            steps: get(&row, 13, "steps")?,
            row,
        })
    }

    /// The record as it is at `now`, with its `steps`.
    pub(super) fn record(&self, key: &RecordKey, steps: Vec<Step>, now: Micros) -> Result<Record, Fault> {
        let row = &self.row;
        let lease_until: Option<Micros> = get(row, 8, "lease_until")?;
        let raw = RawRecord {
            version: 1,
            state: get(row, 1, "state")?,
            owner: get(row, 2, "owner")?,
            attempt: get(row, 3, "attempt")?,
            fence: self.fence,
            fingerprint_version: get(row, 5, "fingerprint_version")?,
            fingerprint: get(row, 6, "fingerprint")?,
            effects_begun: get::<i64>(row, 7, "effects_begun mark")? != 0,
            lease_left: lease_until.map(|until| until.saturating_sub(now)),
            created_at: get(row, 9, "created_at")?,
            expires_in: self.expires_at.saturating_sub(now),
            result_version: get(row, 11, "result_version")?,
            result: get(row, 12, "result")?,
            steps,
        };
        raw.decode(key.clone()).map_err(Fault::Unreadable)
    }
}

/// The step in a row of the steps table.
pub(super) fn step(row: &SqliteRow) -> Result<Step, Fault> {
    let name: &str = get(row, 0, "name of a step")?;
    let state = match get(row, 1, "state of a step")? {
        "begun" => StepState::Begun,
        "done" => StepState::Done(get::<&[u8]>(row, 2, "result of a step")?.into()),
        _ => return Err(Fault::Unreadable("state of a step")),
    };
    Ok(Step { name: name.into(), state })
}

/// A column, or which one it is that cannot be read.
pub(super) fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(
    row: &'r SqliteRow,
    index: usize,
    column: &'static str,
) -> Result<T, Fault> {
    row.try_get(index).map_err(|_| Fault::Unreadable(column))
}
