//! The answers of the blocks, and the records in them.

use std::sync::Arc;

use sqlx::mysql::MySqlRow;
use sqlx::{Decode, MySql, Row, Type};

use super::fault::Fault;
use super::steps;
use crate::key::RecordKey;
use crate::store::{Grant, OwnerToken, Record, Write};
use crate::stores::sql::RawRecord;

/// What a block says, by the number in its first column.
#[derive(Debug)]
pub(super) enum Said {
    /// This is the record, which was left as it is.
    Record(Box<Record>),
    Granted(Grant),
    /// The record is as asked.
    Applied,
    /// The record is not this owner's.
    Lost,
    /// The step is done already.
    Exists(Arc<[u8]>),
    /// So many records were deleted.
    Purged(u64),
    /// There is no record.
    Nothing,
    /// The record that stood in the way is gone: try again.
    Again,
}

impl Said {
    pub(super) fn decode(rows: &[MySqlRow], key: &RecordKey) -> Result<Self, Fault> {
        let Some(row) = rows.first() else { return Err(Fault::Unreadable("answer")) };
        Ok(match get::<i64>(row, 0, "answer")? {
            0 => Self::Record(Box::new(record(row, key.clone())?)),
            1 => Self::Granted(grant(row)?),
            2 => Self::Applied,
            3 => Self::Lost,
            4 => Self::Exists(get::<&[u8]>(row, 1, "result of a step")?.into()),
            5 => Self::Purged(get::<i64>(row, 1, "answer")?.try_into().unwrap_or(0)),
            6 => Self::Nothing,
            7 => Self::Again,
            _ => return Err(Fault::Unreadable("answer")),
        })
    }

    /// The answer of an operation that only writes. One that shows a record that can be read after all says so.
    pub(super) fn write(self) -> Result<Write, Fault> {
        match self {
            Self::Applied => Ok(Write::Applied),
            Self::Lost => Ok(Write::Lost),
            _ => Err(Fault::Unreadable("content")),
        }
    }
}

fn grant(row: &MySqlRow) -> Result<Grant, Fault> {
    Ok(Grant {
        attempt: get::<i64>(row, 1, "attempt")?.try_into().map_err(|_| Fault::Unreadable("attempt"))?,
        fence: get::<i64>(row, 2, "fence")?.try_into().map_err(|_| Fault::Unreadable("fence"))?,
        steps: steps::decode(get::<Option<&[u8]>>(row, 3, "steps")?.unwrap_or_default())
            .map_err(Fault::Unreadable)?,
    })
}

/// The record of a row with the columns that every answer has.
pub(super) fn record(row: &MySqlRow, key: RecordKey) -> Result<Record, Fault> {
    let steps = get::<Option<&[u8]>>(row, 14, "steps")?.unwrap_or_default();
    RawRecord {
        version: get(row, 1, "version")?,
        state: get(row, 2, "state")?,
        owner: get(row, 3, "owner")?,
        attempt: get::<u32>(row, 4, "attempt")?.into(),
        fence: get(row, 5, "fence")?,
        fingerprint_version: get::<u8>(row, 6, "fingerprint_version")?.into(),
        fingerprint: get(row, 7, "fingerprint")?,
        effects_begun: get(row, 8, "effects_begun")?,
        lease_left: get(row, 9, "lease_until")?,
        created_at: get(row, 10, "created_at")?,
        expires_in: get(row, 11, "expires_at")?,
        result_version: get::<Option<u32>>(row, 12, "result_version")?.map(i64::from),
        result: get(row, 13, "result")?,
        steps: steps::decode(steps).map_err(Fault::Unreadable)?,
    }
    .decode(key)
    .map_err(Fault::Unreadable)
}

/// The key of a row that also has it, after the record's columns.
pub(super) fn key(row: &MySqlRow) -> Result<RecordKey, Fault> {
    let text = |index, column| {
        std::str::from_utf8(get::<&[u8]>(row, index, column)?).map_err(|_| Fault::Unreadable(column))
    };
    Ok(RecordKey::new(text(16, "operation")?, text(15, "key")?))
}

/// A column, or which one it is that cannot be read.
pub(super) fn get<'r, T: Decode<'r, MySql> + Type<MySql>>(
    row: &'r MySqlRow,
    index: usize,
    column: &'static str,
) -> Result<T, Fault> {
    row.try_get(index).map_err(|_| Fault::Unreadable(column))
}

/// The bytes of a token, as they are bound.
pub(super) fn token(owner: &OwnerToken) -> &[u8] {
    owner.as_bytes()
}
