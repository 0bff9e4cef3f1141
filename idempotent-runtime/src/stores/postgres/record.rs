//! Rows of the answers, and the records in them.

use std::borrow::Cow;

use sqlx::postgres::{PgRow, PgValueFormat};
use sqlx::{Decode, Postgres, Row, Type, ValueRef};

use super::super::sql::RawRecord;
use super::fault::Fault;
use crate::key::RecordKey;
use crate::store::{Record, Step, StepState};

/// What [`get`] can read.
pub(super) trait Readable<'r>: Decode<'r, Postgres> + Type<Postgres> {}
impl<'r, T: Decode<'r, Postgres> + Type<Postgres>> Readable<'r> for T {}

/// The value of a column, or the name of what cannot be read.
pub(super) fn get<'r, T: Readable<'r>>(row: &'r PgRow, index: usize, what: &'static str) -> Result<T, Fault> {
    row.try_get(index).map_err(|_| Fault::Unreadable(what))
}

/// Bytes, in place where they came as they are.
pub(super) fn bytes<'r>(
    row: &'r PgRow,
    index: usize,
    what: &'static str,
) -> Result<Option<Cow<'r, [u8]>>, Fault> {
    let value = row.try_get_raw(index).map_err(|_| Fault::Unreadable(what))?;
    if value.is_null() {
        return Ok(None);
    }
    let bytes = match value.format() {
        PgValueFormat::Binary => value.as_bytes().map(Cow::Borrowed),
        PgValueFormat::Text => <Vec<u8> as Decode<Postgres>>::decode(value).map(Cow::Owned),
    };
    bytes.map(Some).map_err(|_| Fault::Unreadable(what))
}

/// The record in the columns that every statement shows in the same order, from `first` on. `key`: the record's, if
/// whoever asks has it.
pub(super) fn decode(row: &PgRow, first: usize, key: Option<&RecordKey>) -> Result<Record, Fault> {
    let at = |offset: usize| first + offset;
    let key = match key {
        Some(key) => key.clone(),
        None => RecordKey::new(get::<String>(row, at(1), "operation")?, get::<String>(row, at(0), "key")?),
    };
    let owner = bytes(row, at(4), "owner")?.ok_or(Fault::Unreadable("owner"))?;
    let fingerprint = bytes(row, at(8), "fingerprint")?.ok_or(Fault::Unreadable("fingerprint"))?;
    let result = bytes(row, at(14), "result")?;
    let raw = RawRecord {
        version: get(row, at(2), "version")?,
        state: get(row, at(3), "state")?,
        owner: &owner,
        attempt: get(row, at(5), "attempt")?,
        fence: get(row, at(6), "fence")?,
        fingerprint_version: get(row, at(7), "fingerprint_version")?,
        fingerprint: &fingerprint,
        effects_begun: get(row, at(9), "effects_begun")?,
        lease_left: get(row, at(10), "lease_until")?,
        created_at: get(row, at(11), "created_at")?,
        expires_in: get(row, at(12), "expires_at")?,
        result_version: get(row, at(13), "result_version")?,
        result: result.as_deref(),
        steps: steps(row, at(15))?,
    };
    raw.decode(key).map_err(Fault::Unreadable)
}

/// The two arrays of names and results.
fn steps(row: &PgRow, first: usize) -> Result<Vec<Step>, Fault> {
    let names: Option<Vec<Option<String>>> = get(row, first, "step_names")?;
    let Some(names) = names else { return Ok(Vec::new()) };
    let results: Option<Vec<Option<Vec<u8>>>> = get(row, first + 1, "step_results")?;
    let results = results.unwrap_or_default();
    if names.len() != results.len() {
        return Err(Fault::Unreadable("step_results"));
    }
    let step = |(name, result): (Option<String>, Option<Vec<u8>>)| Step {
        // In answers as text, sqlx takes this name for a null, which the column never holds.
        name: name.map_or_else(|| "NULL".into(), Into::into),
        state: result.map_or(StepState::Begun, |bytes| StepState::Done(bytes.into())),
    };
    Ok(names.into_iter().zip(results).map(step).collect())
}
