//! What the owner of a record does with it: keep it alive, settle it, let go of it, write a step.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

use super::fault::unavailable;
use super::item::{Item, Row, RowState, number, owner, step, text};
use super::names::step_name;
use super::statement::{Settling, Statement, Values};
use super::table::{TRIES, Table, Written, expiry, seen};
use super::time::{Micros, OVER};
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, PutStep, Release, Settled, Step, StepState, StoreResult, Write};

/// The statement that settles with `settled`, and its values.
pub(super) fn settling<'a>(statements: &'a Settling, settled: &Settled) -> (&'a Statement, Values) {
    let mut values = vec![(":state", text(settled.name().as_str()))];
    let statement = match settled {
        Settled::Completed(stored) | Settled::Failed(stored) => {
            values.push((":result", super::item::bytes(&*stored.bytes)));
            values.push((":result_version", number(stored.version)));
            &statements.with_result
        }
        Settled::NotRetained => &statements.without_result,
        Settled::Unknown => &statements.unknown,
    };
    (statement, values)
}

impl Table {
    /// The record that stood in the way of the owner's write, if it is the owner's own: then it is settled, or the step is done.
    fn own(&self, item: Option<&Item>, token: OwnerToken, now: Micros) -> StoreResult<Option<Row>> {
        Ok(self.current(item, now)?.filter(|row| row.owner == token))
    }

    /// [`renew`](crate::store::Store::renew), and with another statement
    /// [`begin_effects`](crate::store::Store::begin_effects).
    pub(super) async fn renew(
        &self,
        key: &RecordKey,
        token: OwnerToken,
        lease: Lease,
        statement: &Statement,
    ) -> StoreResult<Write> {
        let now = self.now();
        let mut values = self.lease(lease, now);
        values.push((":owner", owner(token)));
        match self.update(key, statement, values, ReturnValue::None).await? {
            Written::Done(_) => Ok(Write::Applied),
            Written::Refused(item) => {
                self.current(item.as_ref(), now)?;
                Ok(Write::Lost)
            }
        }
    }

    /// [`complete`](crate::store::Store::complete).
    pub(super) async fn complete(
        &self,
        key: &RecordKey,
        token: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        let now = self.now();
        let (statement, mut values) = settling(&self.statements.settle, settled);
        values.extend(expiry(self.kept_until(keep, now)));
        values.extend([(":now", number(now)), (":owner", owner(token))]);
        match self.update(key, statement, values, ReturnValue::None).await? {
            Written::Done(_) => Ok(Write::Applied),
            // The answer of an earlier one had been lost.
            Written::Refused(item) => Ok(match self.own(item.as_ref(), token, now)? {
                Some(row) if !row.is_running() => Write::Applied,
                _ => Write::Lost,
            }),
        }
    }

    /// [`release`](crate::store::Store::release). One request, unless there are steps to be kept.
    pub(super) async fn release(
        &self,
        key: &RecordKey,
        token: OwnerToken,
        how: Release,
    ) -> StoreResult<Write> {
        let now = self.now();
        let own = vec![(":now", number(now)), (":owner", owner(token))];
        let written = match how {
            Release::Forget => self.delete(self.key(key), &self.statements.forget_own, own).await?,
            Release::Unused => self.delete(self.key(key), &self.statements.forget_first, own).await?,
            Release::Abandon => return self.abandon(key, token, own, now).await,
        };
        let Written::Refused(mut item) = written else { return Ok(Write::Applied) };
        for _ in 0..TRIES {
            let now = self.now();
            let Some(row) = self.current(item.as_ref(), now)? else { return Ok(Write::Applied) };
            if row.owner != token || !row.is_running() {
                return Ok(Write::Lost);
            }
            let written = match how {
                Release::Unused if row.attempt > 1 || !row.steps.is_empty() => {
                    self.return_unused(key, &row, now).await?
                }
                // The SDK had repeated the request, and its first try had come through.
                Release::Forget if row.is_reopened() => return Ok(Write::Applied),
                _ => self.reopen(key, &row, (row.owner, row.attempt), now).await?,
            };
            match written {
                Written::Done(_) => return Ok(Write::Applied),
                Written::Refused(changed) => item = changed,
            }
        }
        Err(unavailable("the record changed all the time"))
    }

    async fn abandon(
        &self,
        key: &RecordKey,
        token: OwnerToken,
        values: Values,
        now: Micros,
    ) -> StoreResult<Write> {
        // The expiry itself is computed by the server, from what the last lease said; so the time-to-live, which nothing
        // rests on, is left where that put it: later.
        match self.update(key, &self.statements.abandon, values, ReturnValue::None).await? {
            Written::Done(_) => Ok(Write::Applied),
            Written::Refused(item) => Ok(match self.current(item.as_ref(), now)? {
                Some(row) if row.owner != token || !row.is_running() => Write::Lost,
                // Absent; or its lease was over, and stays as it ended.
                _ => Write::Applied,
            }),
        }
    }

    /// Takes an unused attempt off the count of the record that was seen.
    async fn return_unused(&self, key: &RecordKey, row: &Row, now: Micros) -> StoreResult<Written> {
        let (lease, expires) = ended(row, now);
        let mut values = expiry(expires);
        values.extend(seen(row));
        values.extend([
            (":owner", owner(OwnerToken::NOBODY)),
            (":attempt", number(row.attempt.saturating_sub(1))),
            (":lease", number(lease)),
        ]);
        self.update(key, &self.statements.return_unused, values, ReturnValue::None).await
    }

    /// Makes room for the next call: deletes the record that was seen, or, if it has finished steps, keeps those and
    /// nothing else, under this owner and count.
    pub(super) async fn reopen(
        &self,
        key: &RecordKey,
        row: &Row,
        (token, attempt): (OwnerToken, u32),
        now: Micros,
    ) -> StoreResult<Written> {
        if row.done_steps().next().is_none() {
            return self.delete(self.key(key), &self.statements.delete, seen(row)).await;
        }
        let (lease, expires) = ended(row, now);
        let (mut steps, mut places) = (Item::new(), Item::new());
        for (place, done) in row.done_steps() {
            let name = step_name(&done.name);
            places.insert(name.clone(), number(*place));
            steps.insert(name, step(&done.state));
        }
        let mut values = expiry(expires);
        values.extend(seen(row));
        values.extend([
            (":owner", owner(token)),
            (":attempt", number(attempt)),
            (":lease", number(lease)),
            (":steps", AttributeValue::M(steps)),
            (":places", AttributeValue::M(places)),
        ]);
        self.update(key, &self.statements.reopen, values, ReturnValue::None).await
    }

    /// [`put_step`](crate::store::Store::put_step).
    pub(super) async fn put_step(
        &self,
        key: &RecordKey,
        token: OwnerToken,
        new: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        let now = self.now();
        let name = step_name(&new.name);
        let mut values = self.lease(lease, now);
        values.extend([
            (":owner", owner(token)),
            (":name", text(name.as_str())),
            (":names", AttributeValue::Ss(vec![name.clone()])),
            (":step", step(&new.state)),
        ]);
        let statement = match new.state {
            StepState::Begun => &self.statements.step_begun,
            StepState::Done(_) => &self.statements.step_done,
        };
        match self.update_step(key, statement, values, ReturnValue::None, Some(name)).await? {
            Written::Done(_) => Ok(PutStep::Stored),
            Written::Refused(item) => {
                let row = self.own(item.as_ref(), token, now)?.filter(Row::is_running);
                let Some(result) = row.and_then(|row| row.result_of(&new.name)) else {
                    return Ok(PutStep::Lost);
                };
                // It is done already, which only a repetition finds; the lease is renewed all the same.
                Ok(match self.renew(key, token, lease, &self.statements.renew).await? {
                    Write::Applied => PutStep::Exists(result),
                    Write::Lost => PutStep::Lost,
                })
            }
        }
    }
}

/// The end of the lease, now at the latest, and of the record, which is kept as long after it as it was to be.
fn ended(row: &Row, now: Micros) -> (Micros, Micros) {
    match row.state {
        RowState::Running { lease, .. } if lease <= now => (lease, row.expires),
        RowState::Running { lease, .. } => (OVER, row.expires.saturating_sub(lease.saturating_sub(now))),
        RowState::Settled(_) => (OVER, row.expires),
    }
}
