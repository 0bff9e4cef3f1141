//! What the owner of a record does with it: keep it alive, settle it, let go of it, write a step.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgConnection;

use super::super::sql::{encode, micros};
use super::Sql;
use super::ask::Value;
use super::fault::Fault;
use super::record::{bytes, get};
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, PutStep, Release, Settled, Step, StepState, Write};

/// [`renew`](crate::store::Store::renew), and with `effects` [`begin_effects`](crate::store::Store::begin_effects).
#[derive(Clone, Debug)]
pub(super) struct Renew {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) lease: Lease,
    pub(super) effects: bool,
}

/// [`complete`](crate::store::Store::complete).
#[derive(Clone, Debug)]
pub(super) struct Complete {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) settled: Settled,
    pub(super) keep: Duration,
}

fn applied(applied: bool) -> Write {
    if applied { Write::Applied } else { Write::Lost }
}

pub(super) async fn renew(connection: &mut PgConnection, sql: &Sql, renew: &Renew) -> Result<Write, Fault> {
    let values = vec![
        Value::Text(renew.key.as_str()),
        Value::bytes(renew.owner.as_bytes()),
        Value::Int(Some(micros(renew.lease.duration))),
        Value::Int(Some(micros(renew.lease.unknown_ttl))),
        Value::Bool(renew.effects),
    ];
    let rows = sql.sending.rows(connection, &sql.statements.renew, values).await?;
    Ok(applied(!rows.is_empty()))
}

/// The same for several calls with different keys.
pub(super) async fn renew_many(
    connection: &mut PgConnection,
    sql: &Sql,
    renewals: &[Renew],
) -> Result<Vec<Write>, Fault> {
    let ints = |of: fn(&Renew) -> i64| Value::Ints(renewals.iter().map(|renew| Some(of(renew))).collect());
    let values = vec![
        Value::Texts(renewals.iter().map(|renew| renew.key.as_str()).collect()),
        Value::BytesMany(renewals.iter().map(|renew| Some(renew.owner.as_bytes().as_slice())).collect()),
        ints(|renew| micros(renew.lease.duration)),
        ints(|renew| micros(renew.lease.unknown_ttl)),
        Value::Bools(renewals.iter().map(|renew| renew.effects).collect()),
    ];
    let rows = sql.sending.rows(connection, &sql.statements.renew_many, values).await?;
    let written: HashSet<&str> = rows.iter().map(|row| get(row, 0, "key")).collect::<Result<_, _>>()?;
    Ok(renewals.iter().map(|renew| applied(written.contains(renew.key.as_str()))).collect())
}

pub(super) async fn complete(
    connection: &mut PgConnection,
    sql: &Sql,
    complete: &Complete,
) -> Result<Write, Fault> {
    let (state, version, result) = encode(&complete.settled);
    let values = vec![
        Value::Text(complete.key.as_str()),
        Value::bytes(complete.owner.as_bytes()),
        Value::Text(state),
        Value::Int(version),
        Value::Bytes(result),
        Value::Int(Some(micros(complete.keep))),
    ];
    let rows = sql.sending.rows(connection, &sql.statements.complete, values).await?;
    Ok(applied(!rows.is_empty()))
}

/// The same for several calls with different keys.
pub(super) async fn complete_many(
    connection: &mut PgConnection,
    sql: &Sql,
    completions: &[Complete],
) -> Result<Vec<Write>, Fault> {
    let encoded: Vec<_> = completions.iter().map(|complete| encode(&complete.settled)).collect();
    let values = vec![
        Value::Texts(completions.iter().map(|complete| complete.key.as_str()).collect()),
        Value::BytesMany(
            completions.iter().map(|complete| Some(complete.owner.as_bytes().as_slice())).collect(),
        ),
        Value::Texts(encoded.iter().map(|(state, _, _)| *state).collect()),
        Value::Ints(encoded.iter().map(|(_, version, _)| *version).collect()),
        Value::BytesMany(encoded.iter().map(|(_, _, result)| *result).collect()),
        Value::Ints(completions.iter().map(|complete| Some(micros(complete.keep))).collect()),
    ];
    let rows = sql.sending.rows(connection, &sql.statements.complete_many, values).await?;
    let written: HashSet<&str> = rows.iter().map(|row| get(row, 0, "key")).collect::<Result<_, _>>()?;
    Ok(completions.iter().map(|complete| applied(written.contains(complete.key.as_str()))).collect())
}

/// [`release`](crate::store::Store::release), on any connection.
pub(super) async fn release(
    connection: &mut PgConnection,
    sql: &Sql,
    key: &RecordKey,
    owner: OwnerToken,
    how: Release,
) -> Result<Write, Fault> {
    let statement = match how {
        Release::Forget => &sql.statements.release_forget,
        Release::Unused => &sql.statements.release_unused,
        Release::Abandon => &sql.statements.release_abandon,
    };
    let values = vec![Value::Text(key.as_str()), Value::bytes(owner.as_bytes())];
    let rows = sql.sending.rows(connection, statement, values).await?;
    // No record: then this release, or one before it, has done its work.
    let Some(row) = rows.first() else { return Ok(Write::Applied) };
    if get(row, 0, "answer")? {
        return Ok(Write::Applied);
    }
    if get(row, 1, "answer")? { Err(Fault::Contended) } else { Ok(Write::Lost) }
}

/// [`put_step`](crate::store::Store::put_step), on any connection.
pub(super) async fn put_step(
    connection: &mut PgConnection,
    sql: &Sql,
    (key, owner): (&RecordKey, OwnerToken),
    step: &Step,
    lease: Lease,
) -> Result<PutStep, Fault> {
    let result = match &step.state {
        StepState::Begun => None,
        StepState::Done(bytes) => Some(&**bytes),
    };
    let values = vec![
        Value::Text(key.as_str()),
        Value::bytes(owner.as_bytes()),
        Value::Text(&step.name),
        Value::Bytes(result),
        Value::Int(Some(micros(lease.duration))),
        Value::Int(Some(micros(lease.unknown_ttl))),
    ];
    let rows = sql.sending.rows(connection, &sql.statements.put_step, values).await?;
    let Some(row) = rows.first() else { return Ok(PutStep::Lost) };
    Ok(match bytes(row, 0, "step_results")? {
        // Another result than the one that was sent, which stays.
        Some(result) => PutStep::Exists((&*result).into()),
        None => PutStep::Stored,
    })
}
