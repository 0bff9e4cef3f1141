//! Granting the right to run, or showing what stands in the way; for one call, or for several at once.

use std::collections::HashMap;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::super::sql::micros;
use super::Sql;
use super::ask::Value;
use super::familiar::stands_in_the_way;
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
    fn borrowed(&self) -> Reserve<'_> {
        Reserve {
            key: &self.key,
            owner: self.owner,
            fingerprint: self.fingerprint,
            lease: self.lease,
            take_over: self.take_over,
            max_attempts: self.max_attempts,
        }
    }

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

/// [`reserve`](crate::store::Store::reserve), on any connection: one statement for a new record and for one in the way,
/// another one for a record that is there and may be taken.
pub(super) async fn reserve(
    connection: &mut PgConnection,
    sql: &Sql,
    request: &Reserve<'_>,
) -> Result<Reserved, Fault> {
    let rows = sql.sending.rows(connection, &sql.statements.try_new, common(request)).await?;
    match rows.first().map(|row| tried(row, request)).transpose()? {
        Some(Tried::Answered(answer)) => return Ok(answer),
        Some(Tried::Open) => {}
        Some(Tried::Changed) | None => return Err(Fault::Contended),
    }
    let (in_doubt, with_steps) = policy(request.take_over);
    let mut values = common(request);
    values.extend([
        Value::Bool(in_doubt),
        Value::Bool(with_steps),
        Value::Int(Some(request.max_attempts.into())),
    ]);
    let rows = sql.sending.rows(connection, &sql.statements.reserve, values).await?;
    match rows.first() {
        Some(row) => answer(row, request.key),
        None => Err(Fault::Contended),
    }
}

/// The values that both statements take.
fn common<'r>(request: &'r Reserve<'_>) -> Vec<Value<'r>> {
    vec![
        Value::Text(request.key.as_str()),
        Value::Text(request.key.operation()),
        Value::bytes(request.owner.as_bytes()),
        Value::Int(Some(request.fingerprint.version().into())),
        Value::bytes(request.fingerprint.digest()),
        Value::Int(Some(micros(request.lease.duration))),
        Value::Int(Some(micros(request.lease.unknown_ttl))),
    ]
}

/// What the first statement has found.
enum Tried {
    Answered(Reserved),
    /// A record that may be taken.
    Open,
    /// A record that came while the statement ran.
    Changed,
}

fn tried(row: &PgRow, request: &Reserve<'_>) -> Result<Tried, Fault> {
    if let Some(fence) = get::<Option<i64>>(row, 1, "fence")? {
        let fence = fence.try_into().map_err(|_| Fault::Unreadable("fence"))?;
        return Ok(Tried::Answered(Reserved::Granted(Grant { attempt: 1, fence, steps: Vec::new() })));
    }
    if get::<Option<&str>>(row, 2, "key")?.is_none() {
        return Ok(Tried::Changed);
    }
    let record = decode(row, 2, Some(request.key))?;
    if !record.expires_in.is_zero() && stands_in_the_way(&record, request) {
        return Ok(Tried::Answered(Reserved::Held(record)));
    }
    Ok(Tried::Open)
}

/// The same for several calls with different keys and one policy. The answers are in the order of the requests, with
/// [`Fault::Contended`] for a record that changed under the statement.
pub(super) async fn reserve_many(
    connection: &mut PgConnection,
    sql: &Sql,
    requests: &[ReserveKey],
) -> Result<Vec<Result<Reserved, Fault>>, Fault> {
    let all: Vec<&ReserveKey> = requests.iter().collect();
    let rows = sql.sending.rows(connection, &sql.statements.try_new_many, common_many(&all)).await?;
    let by_key = by_key(&rows, 0)?;
    let mut answers = Vec::with_capacity(requests.len());
    let mut open = Vec::new();
    for request in requests {
        let found = match by_key.get(request.key.as_str()) {
            Some(row) => tried(row, &request.borrowed()),
            None => Ok(Tried::Changed),
        };
        answers.push(match found {
            Ok(Tried::Answered(answer)) => Some(Ok(answer)),
            Ok(Tried::Changed) => Some(Err(Fault::Contended)),
            Ok(Tried::Open) => {
                open.push(request);
                None
            }
            Err(fault) => Some(Err(fault)),
        });
    }
    let Some(first) = open.first() else { return Ok(answers.into_iter().flatten().collect()) };
    let (in_doubt, with_steps) = policy(first.take_over);
    let max_attempts = first.max_attempts;
    let mut values = common_many(&open);
    values.extend([Value::Bool(in_doubt), Value::Bool(with_steps), Value::Int(Some(max_attempts.into()))]);
    let rows = sql.sending.rows(connection, &sql.statements.reserve_many, values).await?;
    let by_key = self::by_key(&rows, 1)?;
    let second = |request: &ReserveKey| match by_key.get(request.key.as_str()) {
        Some(row) => answer(row, &request.key),
        None => Err(Fault::Contended),
    };
    let both = requests.iter().zip(answers);
    Ok(both.map(|(request, answer)| answer.unwrap_or_else(|| second(request))).collect())
}

fn common_many<'r>(requests: &[&'r ReserveKey]) -> Vec<Value<'r>> {
    let ints =
        |of: fn(&ReserveKey) -> i64| Value::Ints(requests.iter().map(|request| Some(of(request))).collect());
    vec![
        Value::Texts(requests.iter().map(|request| request.key.as_str()).collect()),
        Value::Texts(requests.iter().map(|request| request.key.operation().as_str()).collect()),
        Value::BytesMany(requests.iter().map(|request| Some(request.owner.as_bytes().as_slice())).collect()),
        ints(|request| request.fingerprint.version().into()),
        Value::BytesMany(
            requests.iter().map(|request| Some(request.fingerprint.digest().as_slice())).collect(),
        ),
        ints(|request| micros(request.lease.duration)),
        ints(|request| micros(request.lease.unknown_ttl)),
    ]
}

/// The rows, by the key in one of their columns.
fn by_key(rows: &[PgRow], column: usize) -> Result<HashMap<&str, &PgRow>, Fault> {
    rows.iter().map(|row| Ok((get(row, column, "key")?, row))).collect()
}

/// What was written for this call and is running is its own; everything else stands in its way.
fn answer(row: &PgRow, key: &RecordKey) -> Result<Reserved, Fault> {
    let written: bool = get(row, 0, "answer")?;
    let record = decode(row, 1, Some(key))?;
    Ok(match record.state {
        State::Running { .. } if written => {
            Reserved::Granted(Grant { attempt: record.attempt, fence: record.fence, steps: record.steps })
        }
        _ => Reserved::Held(record),
    })
}
