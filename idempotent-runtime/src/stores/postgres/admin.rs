//! What is asked about records, and by those who look after them.

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::super::sql::{encode, micros};
use super::Sql;
use super::ask::Value;
use super::fault::Fault;
use super::record::{decode, get};
use crate::key::RecordKey;
use crate::store::{Compared, ListQuery, OwnerToken, Page, Record, Resolution, StateName};

/// So many blocks of 8 KiB are looked at by one statement of a purge, and so many such statements are sent by one call.
const BLOCKS: i64 = 1024;
const STATEMENTS: u32 = 64;

/// So many records are purged by one statement.
const PURGED: usize = 1000;

/// [`load`](crate::store::Store::load), on any connection.
pub(super) async fn load(
    connection: &mut PgConnection,
    sql: &Sql,
    key: &RecordKey,
) -> Result<Option<Record>, Fault> {
    let rows = sql.sending.rows(connection, &sql.statements.load, vec![Value::Text(key.as_str())]).await?;
    let record = rows.first().map(|row| decode(row, 0, Some(key))).transpose()?;
    Ok(record.filter(|record| !record.expires_in.is_zero()))
}

/// [`resolve`](crate::store::Store::resolve), on any connection.
pub(super) async fn resolve(
    connection: &mut PgConnection,
    sql: &Sql,
    key: &RecordKey,
    (seen, replacement): (OwnerToken, OwnerToken),
    resolution: &Resolution,
) -> Result<Compared, Fault> {
    let mut values =
        vec![Value::Text(key.as_str()), Value::bytes(seen.as_bytes()), Value::bytes(replacement.as_bytes())];
    let statement = match resolution {
        Resolution::Done { settled, keep } => {
            let (state, version, result) = encode(settled);
            values.extend([
                Value::Text(state),
                Value::Int(version),
                Value::Bytes(result),
                Value::Int(Some(micros(*keep))),
            ]);
            &sql.statements.resolve_done
        }
        Resolution::NotDone => &sql.statements.resolve_not_done,
    };
    compared(&sql.sending.rows(connection, statement, values).await?, key)
}

/// [`forget`](crate::store::Store::forget), on any connection.
pub(super) async fn forget(
    connection: &mut PgConnection,
    sql: &Sql,
    key: &RecordKey,
    seen: OwnerToken,
) -> Result<Compared, Fault> {
    let values = vec![Value::Text(key.as_str()), Value::bytes(seen.as_bytes())];
    compared(&sql.sending.rows(connection, &sql.statements.forget, values).await?, key)
}

/// Changed, or looking as if it should have been, or what is there.
fn compared(rows: &[PgRow], key: &RecordKey) -> Result<Compared, Fault> {
    let Some(row) = rows.first() else { return Ok(Compared::Differs(None)) };
    if get(row, 0, "answer")? {
        return Ok(Compared::Changed);
    }
    if get(row, 1, "answer")? {
        return Err(Fault::Contended);
    }
    Ok(Compared::Differs(Some(Box::new(decode(row, 2, Some(key))?))))
}

/// Where a page ended: the time of creation in microseconds, the operation and the key of its last row.
struct Cursor<'c> {
    created_at: i64,
    operation: &'c str,
    key: &'c str,
}

impl<'c> Cursor<'c> {
    fn parse(text: &'c str) -> Option<Self> {
        let (created_at, rest) = text.split_once(' ')?;
        let (len, rest) = rest.split_once(' ')?;
        let (operation, key) = rest.split_at_checked(len.parse().ok()?)?;
        Some(Self { created_at: created_at.parse().ok()?, operation, key })
    }

    /// The cursor at a row of a list.
    fn at(row: &PgRow) -> Result<String, Fault> {
        let operation: &str = get(row, 1, "operation")?;
        let (created_at, key) = (get::<i64>(row, 11, "created_at")?, get::<&str>(row, 0, "key")?);
        Ok(format!("{created_at} {} {operation}{key}", operation.len()))
    }
}

/// [`list`](crate::store::Store::list), on any connection.
pub(super) async fn list(connection: &mut PgConnection, sql: &Sql, query: &ListQuery) -> Result<Page, Fault> {
    let after = match query.after.as_deref() {
        None => None,
        Some(text) => Some(Cursor::parse(text).ok_or_else(|| {
            Fault::Refused("the `after` of a list is not one that this store has given out".into())
        })?),
    };
    let size = query.page_size();
    let values = vec![
        Value::OptText(query.operation.as_deref()),
        Value::OptText(query.state.map(StateName::as_str)),
        Value::Bool(query.stuck),
        Value::OptText(after.as_ref().map(|after| after.operation)),
        Value::Int(after.as_ref().map(|after| after.created_at)),
        Value::OptText(after.as_ref().map(|after| after.key)),
        Value::Int(Some(i64::try_from(size).unwrap_or(i64::MAX).saturating_add(1))),
    ];
    let statement = match query.operation {
        Some(_) => &sql.statements.list_operation,
        None => &sql.statements.list,
    };
    let rows = sql.sending.rows(connection, statement, values).await?;
    let shown = rows.get(..size).unwrap_or(&rows);
    let next = match shown.last() {
        Some(last) if rows.len() > size => Some(Cursor::at(last)?),
        _ => None,
    };
    let mut page = Page { records: Vec::with_capacity(shown.len()), next };
    let mut unreadable = 0_u32;
    for row in shown {
        match decode(row, 0, None) {
            Ok(record) => page.records.push(record),
            // One of them must not hide the others from the one who came to look.
            Err(Fault::Unreadable(_)) => unreadable += 1,
            Err(fault) => return Err(fault),
        }
    }
    if unreadable > 0 {
        tracing::warn!(
            target: "idempotent", unreadable, "the PostgreSQL store left records out of a list that it cannot read"
        );
    }
    Ok(page)
}

/// [`purge`](crate::store::Store::purge), on any connection: from the block `place` on, which is moved.
///
/// Each statement is its own transaction, so that no lock is held for long and another process may purge beside this
/// one. One call looks at half a gigabyte at most; the next goes on where it ended.
pub(super) async fn purge(
    connection: &mut PgConnection,
    sql: &Sql,
    limit: usize,
    place: &mut i64,
) -> Result<usize, Fault> {
    let table = [Value::Text(&sql.table)];
    let rows = sql.sending.rows(connection, &sql.statements.blocks, table.into()).await?;
    let blocks: i64 = rows.first().map_or(Ok(0), |row| get(row, 0, "size"))?;
    let (mut purged, mut looked_at) = (0_usize, 0);
    for _ in 0..STATEMENTS {
        if purged >= limit || looked_at > blocks {
            break;
        }
        if *place > blocks {
            *place = 0;
        }
        let batch = (limit - purged).min(PURGED);
        let (from, to) = (format!("({place},0)"), format!("({},0)", *place + BLOCKS));
        let values = vec![
            Value::Text(&from),
            Value::Text(&to),
            Value::Int(Some(i64::try_from(batch).unwrap_or(i64::MAX))),
        ];
        let gone = sql.sending.written(connection, &sql.statements.purge, values).await?;
        let gone = usize::try_from(gone).unwrap_or(usize::MAX);
        purged = purged.saturating_add(gone);
        if gone < batch {
            *place += BLOCKS;
            looked_at += BLOCKS;
        }
    }
    Ok(purged)
}
