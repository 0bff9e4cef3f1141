//! Granting the right to run, or showing what stands in the way; for one call, or for several at once.

use std::collections::HashMap;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::super::sql::micros;
use super::Sql;
use super::ask::Value;
use super::fault::Fault;
use super::record::{decode, get};
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{Grant, Lease, OwnerToken, Record, Reserve, Reserved, State, TakeOver};

/// [`Reserve`], owned.
#[derive(Clone, Debug)]
pub(super) struct ReserveKey {
    pub(super) key: RecordKey,
    owner: OwnerToken,
    fingerprint: Fingerprint,
    lease: Lease,
    pub(super) take_over: TakeOver,
    pub(super) max_attempts: u32,
}

impl From<Reserve<'_>> for ReserveKey {
    fn from(request: Reserve<'_>) -> Self {
        Self {
            key: request.key.clone(),
            owner: request.owner,
            fingerprint: request.fingerprint,
            lease: request.lease,
            take_over: request.take_over,
            max_attempts: request.max_attempts,
        }
    }
}

impl ReserveKey {
    /// Whether `other`, which asked at the same time for the same record, would have been shown `record` as this was.
    pub(super) fn would_see_the_same(&self, other: &Self, record: &Record) -> bool {
        self.fingerprint == other.fingerprint
            && self.take_over == other.take_over
            && self.max_attempts == other.max_attempts
            && record.owner != other.owner
    }
}

/// Whether effects in doubt may be followed by another attempt, and whether there have to be steps.
fn policy(take_over: TakeOver) -> (bool, bool) {
    match take_over {
        TakeOver::Always => (true, false),
        TakeOver::BeforeEffects => (false, false),
        TakeOver::BetweenSteps => (false, true),
    }
}

/// The values of the statement for one call.
pub(super) fn values<'r>(request: &'r Reserve<'_>) -> Vec<Value<'r>> {
    let (in_doubt, with_steps) = policy(request.take_over);
    vec![
        Value::Text(request.key.as_str()),
        Value::Text(request.key.operation()),
        Value::bytes(request.owner.as_bytes()),
        Value::Int(Some(request.fingerprint.version().into())),
        Value::bytes(request.fingerprint.digest()),
        Value::Int(Some(micros(request.lease.duration))),
        Value::Int(Some(micros(request.lease.unknown_ttl))),
        Value::Bool(in_doubt),
        Value::Bool(with_steps),
        Value::Int(Some(request.max_attempts.into())),
    ]
}

/// [`reserve`](crate::store::Store::reserve), on any connection.
pub(super) async fn reserve(
    connection: &mut PgConnection,
    sql: &Sql,
    request: &Reserve<'_>,
) -> Result<Reserved, Fault> {
    let values = values(request);
    let rows = sql.sending.rows(connection, &sql.statements.reserve, values).await?;
    match rows.first() {
        Some(row) => answer(row, request.key),
        None => Err(Fault::Contended),
    }
}

/// The same for several calls with different keys and one policy. The answers are in the order of the requests; none
/// for a record that changed under the statement.
pub(super) async fn reserve_many(
    connection: &mut PgConnection,
    sql: &Sql,
    requests: &[ReserveKey],
) -> Result<Vec<Result<Reserved, Fault>>, Fault> {
    let Some(first) = requests.first() else { return Ok(Vec::new()) };
    let (in_doubt, with_steps) = policy(first.take_over);
    let ints =
        |of: fn(&ReserveKey) -> i64| Value::Ints(requests.iter().map(|request| Some(of(request))).collect());
    let values = vec![
        Value::Texts(requests.iter().map(|request| request.key.as_str()).collect()),
        Value::Texts(requests.iter().map(|request| request.key.operation().as_str()).collect()),
        Value::BytesMany(requests.iter().map(|request| Some(request.owner.as_bytes().as_slice())).collect()),
        ints(|request| request.fingerprint.version().into()),
        Value::BytesMany(
            requests.iter().map(|request| Some(request.fingerprint.digest().as_slice())).collect(),
        ),
        ints(|request| micros(request.lease.duration)),
        ints(|request| micros(request.lease.unknown_ttl)),
        Value::Bool(in_doubt),
        Value::Bool(with_steps),
        Value::Int(Some(first.max_attempts.into())),
    ];
    let rows = sql.sending.rows(connection, &sql.statements.reserve_many, values).await?;
    let mut by_key: HashMap<&str, &PgRow> = HashMap::with_capacity(rows.len());
    for row in &rows {
        by_key.insert(get(row, 1, "key")?, row);
    }
    let answer = |request: &ReserveKey| match by_key.get(request.key.as_str()) {
        Some(row) => answer(row, &request.key),
        None => Err(Fault::Contended),
    };
    Ok(requests.iter().map(answer).collect())
}

/// What was written for this call and is running is its own; everything else stands in its way.
pub(super) fn answer(row: &PgRow, key: &RecordKey) -> Result<Reserved, Fault> {
    let written: bool = get(row, 0, "answer")?;
    let record = decode(row, 1, Some(key))?;
    Ok(match record.state {
        State::Running { .. } if written => {
            Reserved::Granted(Grant { attempt: record.attempt, fence: record.fence, steps: record.steps })
        }
        _ => Reserved::Held(record),
    })
}
