//! A row of the records table, and how it is read.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::types::FromSql;

use super::fault::Fault;
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{OwnerToken, Record, Settled, State, StateName, Step, StepState, Stored};

/// A point in time as the tables keep it: microseconds since the Unix epoch.
pub(super) type Micros = i64;

/// The longest span that is told from forever: 200 years. A sum of two must not be cut off, or a lease would leave nothing of
/// the time for which the record is remembered after it.
const LONGEST: Duration = Duration::from_secs(200 * 365 * 24 * 60 * 60);

/// `duration` in microseconds, at most 200 years; what is longer than nothing is at least one.
pub(super) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.min(LONGEST).as_nanos().div_ceil(1000)).unwrap_or(Micros::MAX)
}

/// From `now` until `then`; zero when that is over.
fn until(then: Micros, now: Micros) -> Duration {
    Duration::from_micros(u64::try_from(then.saturating_sub(now)).unwrap_or(0))
}

/// The columns that [`Row::decode`] reads, in its order.
pub(super) const COLUMNS: &str = "id, owner, attempt, fence, fingerprint_version, fingerprint, state, \
     effects_begun, lease_until, created_at, expires_at, result_version, result, steps, operation, key";

/// A record as it lies in the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) owner: OwnerToken,
    pub(super) attempt: u32,
    pub(super) fence: i64,
    pub(super) fingerprint: Fingerprint,
    pub(super) state: RowState,
    pub(super) created_at: Micros,
    pub(super) expires_at: Micros,
    /// How many rows of the steps table are this record's.
    pub(super) steps: i64,
}

#[derive(Debug)]
pub(super) enum RowState {
    Running { lease_until: Micros, effects_begun: bool },
    Settled(Settled),
}

impl Row {
    /// The row, or which column this version cannot read.
    pub(super) fn decode(row: &rusqlite::Row<'_>) -> Result<Self, Fault> {
        let state: String = get(row, 6, "state")?;
        let state = match state.as_str() {
            "running" => RowState::Running {
                lease_until: get(row, 8, "lease_until")?,
                effects_begun: get(row, 7, "effects_begun mark")?,
            },
            "completed" => RowState::Settled(Settled::Completed(stored(row)?)),
            "failed" => RowState::Settled(Settled::Failed(stored(row)?)),
            "not_retained" => RowState::Settled(Settled::NotRetained),
            "unknown" => RowState::Settled(Settled::Unknown),
            _ => return Err(Fault::Unreadable("state")),
        };
        let fence: i64 = get(row, 3, "fence")?;
        if fence < 0 {
            return Err(Fault::Unreadable("fence"));
        }
        Ok(Self {
            id: get(row, 0, "id")?,
            owner: OwnerToken::from_bytes(get(row, 1, "owner")?),
            attempt: get(row, 2, "attempt")?,
            fence,
            fingerprint: Fingerprint::from_parts(
                get(row, 4, "fingerprint_version")?,
                get(row, 5, "fingerprint")?,
            ),
            state,
            created_at: get(row, 9, "created_at")?,
            expires_at: get(row, 10, "expires_at")?,
            steps: get(row, 13, "steps")?,
        })
    }

    /// The key that the row itself names.
    pub(super) fn key(row: &rusqlite::Row<'_>) -> Result<RecordKey, Fault> {
        let operation: String = get(row, 14, "operation")?;
        let key: String = get(row, 15, "key")?;
        Ok(RecordKey::new(operation, key))
    }

    /// Running under `owner`, whether or not its lease is over.
    pub(super) fn is_running_under(&self, owner: OwnerToken) -> bool {
        self.owner == owner && matches!(self.state, RowState::Running { .. })
    }

    /// Running, with a lease that is not over at `now`.
    pub(super) fn is_live(&self, now: Micros) -> bool {
        matches!(self.state, RowState::Running { lease_until, .. } if lease_until > now)
    }

    /// The record as callers see it.
    pub(super) fn into_record(self, key: RecordKey, steps: Vec<Step>, now: Micros) -> Record {
        Record {
            key,
            owner: self.owner,
            attempt: self.attempt,
            fence: self.fence.unsigned_abs(),
            fingerprint: self.fingerprint,
            state: match self.state {
                RowState::Running { lease_until, effects_begun } => {
                    State::Running { lease_left: until(lease_until, now), effects_begun }
                }
                RowState::Settled(settled) => State::Settled(settled),
            },
            steps,
            created_at: UNIX_EPOCH + until(self.created_at, 0),
            expires_in: until(self.expires_at, now),
        }
    }
}

/// The step in a row of name, done and result.
pub(super) fn decode_step(row: &rusqlite::Row<'_>) -> Result<Step, Fault> {
    let name: Arc<str> = get(row, 0, "name of a step")?;
    let state: String = get(row, 1, "state of a step")?;
    let state = match state.as_str() {
        "begun" => StepState::Begun,
        "done" => StepState::Done(bytes(row, 2, "result of a step")?),
        _ => return Err(Fault::Unreadable("state of a step")),
    };
    Ok(Step { name, state })
}

/// The columns of a settled state: its name, the version of the result, and the result.
pub(super) fn encode(settled: &Settled) -> (&'static str, Option<u32>, Option<&[u8]>) {
    let stored = settled.stored();
    (settled.name().as_str(), stored.map(|stored| stored.version), stored.map(|stored| &*stored.bytes))
}

/// The columns of a step's state.
pub(super) fn encode_step(state: &StepState) -> (&'static str, Option<&[u8]>) {
    match state {
        StepState::Begun => ("begun", None),
        StepState::Done(bytes) => ("done", Some(bytes)),
    }
}

/// The state of a record that a query asks for, if this store has ever written it.
pub(super) fn state_name(state: Option<StateName>) -> Option<&'static str> {
    state.map(StateName::as_str)
}

fn stored(row: &rusqlite::Row<'_>) -> Result<Stored, Fault> {
    Ok(Stored { version: get(row, 11, "result_version")?, bytes: bytes(row, 12, "result")? })
}

/// Copied once, straight from SQLite's page into the shared slice.
fn bytes(row: &rusqlite::Row<'_>, index: usize, column: &'static str) -> Result<Arc<[u8]>, Fault> {
    let value = row.get_ref(index)?;
    value.as_blob().map(Arc::from).map_err(|_| Fault::Unreadable(column))
}

fn get<T: FromSql>(row: &rusqlite::Row<'_>, index: usize, column: &'static str) -> Result<T, Fault> {
    row.get(index).map_err(|_| Fault::Unreadable(column))
}
