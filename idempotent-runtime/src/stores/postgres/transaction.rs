//! Calls in a transaction of the caller's: reserved and settled on the caller's connection.
//!
//! Statements that belong together go in one message as plain text, so that a call costs two round trips:
//!
//! ```text
//! SAVEPOINT idempotent_call_0; INSERT … ; SAVEPOINT idempotent_body_0
//! …the body…
//! UPDATE … ; RELEASE SAVEPOINT idempotent_call_0
//! ```
//!
//! Planning takes the server longer than running them, so the two that have values are prepared once on a connection, in SQL.
//!
//! The outer savepoint is also the proof that the transaction is the one in which the call began: a body that ends it and
//! begins another has lost the savepoint, and releasing it fails.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Executor, PgConnection};
use std::time::Duration;

use super::super::sql::{encode, micros};
use super::ask::{Value, plain};
use super::fault::Fault;
use super::record::get;
use super::{PostgresStore, Sql, reserve};
use crate::store::{Grant, Lease, Reserve, Reserved, Settled, StoreError, StoreResult};
use crate::transaction::{Entered, Entry, Link, Trouble};

/// Writes a record of a new generation where there is none, and waits for whoever is writing one; no row where one stands
/// in the way. What is seen to stand there already costs no write.
///
/// The record is running with its lease over and its effects begun: what the caller sees committed if the call is dropped
/// and the transaction goes on.
pub(super) const FRESH: &str = "WITH was AS MATERIALIZED (SELECT current_setting('lock_timeout') AS setting), \
bound AS MATERIALIZED (SELECT was.setting, set_config('lock_timeout', $7::text, true) AS bound FROM was), \
{clock}, \
got AS (\
 INSERT INTO {table} AS i ({key}, {operation}, {state}, {owner}, {attempt}, {fence}, {fingerprint_version}, \
   {fingerprint}, {version}, {effects_begun}, {watched}, {lease_until}, {created_at}, {expires_at}) \
 SELECT $1::text, $2::text, 'running', $3::bytea, 1, {clock_micros}, $4::bigint, $5::bytea, 1, true, false, \
   clock.now, clock.now, clock.now + $6::bigint * interval '1 microsecond' \
 FROM clock CROSS JOIN bound \
 WHERE bound.bound IS NOT NULL AND NOT EXISTS (SELECT FROM {table} AS i WHERE i.{key} = $1::text \
   AND (i.{expires_at} > clock.now OR NOT {readable})) \
 ON CONFLICT ({key}) DO UPDATE SET {operation} = excluded.{operation}, {state} = excluded.{state}, \
  {owner} = excluded.{owner}, {attempt} = 1, {fence} = greatest(i.{fence} + 1, excluded.{fence}), \
  {fingerprint_version} = excluded.{fingerprint_version}, {fingerprint} = excluded.{fingerprint}, \
  {effects_begun} = true, {watched} = false, {lease_until} = excluded.{lease_until}, \
  {created_at} = excluded.{created_at}, {expires_at} = excluded.{expires_at}, {step_names} = NULL, \
  {step_results} = NULL, {result_version} = NULL, {result} = NULL \
 WHERE {readable} AND i.{expires_at} <= clock_timestamp() \
 RETURNING i.{fence}) \
SELECT got.{fence}::bigint, current_setting('transaction_isolation') IN ('read committed', 'read uncommitted'), \
 bound.setting, set_config('lock_timeout', bound.setting, true) FROM bound LEFT JOIN got ON true";

/// How often a record that comes and goes is looked for.
const TRIES: u32 = 10;

/// A caller's connection, and the store's statements.
#[derive(Debug)]
pub(crate) struct PostgresLink<'c> {
    connection: &'c mut PgConnection,
    store: &'c PostgresStore,
}

impl<'c> PostgresLink<'c> {
    pub(crate) fn new(connection: &'c mut PgConnection, store: &'c PostgresStore) -> Self {
        Self { connection, store }
    }

    fn sql(&self) -> &Sql {
        &self.store.inner.sql
    }

    /// Runs statements in one message and gives the rows of them all.
    async fn run(&mut self, text: String) -> Result<Vec<PgRow>, Fault> {
        Ok(self.connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await?)
    }

    async fn try_to_enter(&mut self, entry: &Entry<'_>) -> Result<Entered, Fault> {
        let Entry { key, owner, fingerprint, unknown_ttl, wait, .. } = *entry;
        let fresh = [
            Value::Text(key.as_str()),
            Value::Text(key.operation()),
            Value::bytes(owner.as_bytes()),
            Value::Int(Some(fingerprint.version().into())),
            Value::bytes(fingerprint.digest()),
            Value::Int(Some(micros(unknown_ttl))),
            Value::Text(&lock_timeout(wait)),
        ];
        let prepared = &self.store.inner.sql.prepared;
        let fresh = prepared.fresh.with(&fresh)?;
        let (call, body) = (entry.call_point(), entry.body_point());
        let mut text = format!("SAVEPOINT {call}; {fresh}; SAVEPOINT {body}");
        for _ in 0..TRIES {
            let rows = match self.run(text).await {
                Err(fault) if fault.is_missing_statement() => {
                    let prepare = prepared.prepare();
                    let text = format!("ROLLBACK TO SAVEPOINT {call}; {prepare}; {fresh}; SAVEPOINT {body}");
                    self.run(text).await?
                }
                answer => answer?,
            };
            let row = rows.first().ok_or(Fault::Contended)?;
            if let Some(fence) = get::<Option<i64>>(row, 0, "fence")? {
                let fence = fence.unsigned_abs();
                return Ok(Entered::Granted(Grant { attempt: 1, fence, steps: Vec::new() }));
            }
            let sees_changes = get(row, 1, "isolation")?;
            let setting: String = get(row, 2, "lock_timeout")?;
            if let Some(entered) = self.look(entry, sees_changes, &setting).await? {
                return Ok(entered);
            }
            text = format!("ROLLBACK TO SAVEPOINT {call}; {fresh}; SAVEPOINT {body}");
        }
        Err(Fault::Contended)
    }

    /// Looks at the record in the way, and takes over from an attempt that is over where the policy allows.
    async fn look(
        &mut self,
        entry: &Entry<'_>,
        sees_changes: bool,
        setting: &str,
    ) -> Result<Option<Entered>, Fault> {
        let sql = &*self.store.inner.sql;
        let Some(record) = super::admin::load(self.connection, sql, entry.key).await? else {
            return Ok(None);
        };
        if !entry.may_follow(&record) {
            return Ok(Some(Entered::Held { record, sees_changes }));
        }
        let lease = Lease { duration: Duration::ZERO, unknown_ttl: entry.unknown_ttl };
        let request = Reserve {
            key: entry.key,
            owner: entry.owner,
            fingerprint: entry.fingerprint,
            lease,
            take_over: entry.take_over,
            max_attempts: entry.max_attempts,
        };
        let follow = plain(sql.statements.follow.as_str(), &reserve::values(&request))?;
        let set = |value: &str| plain("SET LOCAL lock_timeout = $1", &[Value::Text(value)]);
        let (bound, setting) = (set(&lock_timeout(entry.wait))?, set(setting)?);
        let body = entry.body_point();
        let rows = self.run(format!("{bound}; {follow}; {setting}; SAVEPOINT {body}")).await?;
        rows.first()
            .map(|row| {
                Ok(match reserve::answer(row, entry.key)? {
                    Reserved::Granted(grant) => Entered::Granted(grant),
                    Reserved::Held(record) => Entered::Held { record, sees_changes },
                })
            })
            .transpose()
    }

    /// What an error means. `begun`: whether the call's savepoint had been there.
    fn trouble(&self, fault: Fault, begun: bool) -> Trouble {
        let sql = self.sql();
        let code = fault.code().unwrap_or_default();
        let is_missing_table = fault.is_missing_table();
        let is_contention = fault.is_contention();
        let error = fault.into_error(&sql.table, false);
        match &*code {
            "25P01" if !begun => Trouble::NotOpen,
            "25P01" | "3B001" => Trouble::Ended,
            "55P03" => Trouble::Busy,
            _ if is_missing_table => Trouble::NoTable(error),
            _ if is_contention => Trouble::Contended(error),
            _ => Trouble::Store(error),
        }
    }

    /// Makes sure that nothing of a transaction is committed whose record is not what it has to be.
    async fn poison(&mut self) {
        let raise = "DO $$ BEGIN RAISE EXCEPTION 'the record of an idempotent call is gone'; END $$";
        // It fails: that is what it is for.
        let _ = self.run(raise.to_owned()).await;
    }
}

/// As a setting: at least a millisecond, since zero would mean for ever.
fn lock_timeout(wait: Duration) -> String {
    i32::try_from(wait.as_millis()).unwrap_or(i32::MAX).max(1).to_string()
}

#[async_trait]
impl Link for PostgresLink<'_> {
    async fn enter(&mut self, entry: &Entry<'_>) -> Result<Entered, Trouble> {
        let call = entry.call_point();
        match self.try_to_enter(entry).await {
            Ok(Entered::Held { record, sees_changes }) => {
                let released = self.run(format!("RELEASE SAVEPOINT {call}")).await;
                released.map_err(|fault| self.trouble(fault, true))?;
                Ok(Entered::Held { record, sees_changes })
            }
            Ok(granted) => Ok(granted),
            Err(fault) => {
                // In a transaction that had failed before, the savepoint of this name is not this call's.
                let had_failed = fault.code().is_some_and(|code| code == "25P02");
                let trouble = self.trouble(fault, false);
                if !had_failed && !matches!(trouble, Trouble::NotOpen) {
                    // The error is the one that counts; a transaction that cannot go back is of no use any more.
                    let _ = self.undo(entry, 1).await;
                }
                Err(trouble)
            }
        }
    }

    async fn settle(
        &mut self,
        entry: &Entry<'_>,
        _attempt: u32,
        settled: &Settled,
        keep: Duration,
        undo: bool,
    ) -> Result<(), Trouble> {
        let (state, version, result) = encode(settled);
        let values = [
            Value::Text(entry.key.as_str()),
            Value::bytes(entry.owner.as_bytes()),
            Value::Text(state),
            Value::Int(version),
            Value::Bytes(result),
            Value::Int(Some(micros(keep))),
        ];
        let complete = self.sql().prepared.complete.with(&values);
        let complete = complete.map_err(|fault| self.trouble(fault, true))?;
        let call = entry.call_point();
        let back =
            if undo { format!("ROLLBACK TO SAVEPOINT {}; ", entry.body_point()) } else { String::new() };
        let rows = self.run(format!("{back}{complete}; RELEASE SAVEPOINT {call}")).await;
        if rows.map_err(|fault| self.trouble(fault, true))?.is_empty() {
            self.poison().await;
            return Err(Trouble::Ended);
        }
        Ok(())
    }

    async fn undo(&mut self, entry: &Entry<'_>, _attempt: u32) -> Result<(), Trouble> {
        let call = entry.call_point();
        let undone = self.run(format!("ROLLBACK TO SAVEPOINT {call}; RELEASE SAVEPOINT {call}")).await;
        undone.map(drop).map_err(|fault| self.trouble(fault, true))
    }

    async fn make_table(&mut self) -> StoreResult<()> {
        if !self.sql().create {
            return Ok(());
        }
        let limit = Duration::from_secs(5);
        let made = tokio::time::timeout(limit, self.store.prepare()).await;
        made.unwrap_or_else(|elapsed| {
            Err(StoreError::new(super::NAME, crate::store::StoreErrorKind::Unavailable, elapsed))
        })
    }
}
