//! What the owner of a record does with it: keep it alive, settle it, let go of it, write a step.

use std::time::Duration;

use rusqlite::params;

use super::fault::Fault;
use super::job::Operation;
use super::reserve::ends;
use super::row::{self, Micros, Row, RowState, micros};
use super::session::{Query, Session};
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, PutStep, Release, Settled, Step, StepState, Write};

/// [`renew`](crate::store::Store::renew), and with `effects`
/// [`begin_effects`](crate::store::Store::begin_effects).
pub(super) struct Renew {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) lease: Lease,
    pub(super) effects: bool,
}

impl Operation for Renew {
    type Answer = Write;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Write>, Fault> {
        let Some((row, now)) = session.current(&self.key)? else { return Ok(Some(Write::Lost)) };
        if !row.is_running_under(self.owner) {
            return Ok(Some(Write::Lost));
        }
        let (until, expires) = ends(self.lease, now);
        session.set_lease(&row, until, expires, self.effects)?;
        Ok(Some(Write::Applied))
    }
}

/// [`complete`](crate::store::Store::complete).
pub(super) struct Complete {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) settled: Settled,
    pub(super) keep: Duration,
}

impl Operation for Complete {
    type Answer = Write;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Write>, Fault> {
        let Some((mut row, now)) = session.current(&self.key)? else { return Ok(Some(Write::Lost)) };
        if row.owner != self.owner {
            return Ok(Some(Write::Lost));
        }
        // Settled under this owner: the answer of an earlier complete had been lost.
        if matches!(row.state, RowState::Running { .. }) {
            row.expires_at = now.saturating_add(micros(self.keep));
            settle(session, &row, &self.settled)?;
        }
        Ok(Some(Write::Applied))
    }
}

/// Settles `row` under its owner until its `expires_at`. Only an unknown record keeps its steps: it may go back to work.
pub(super) fn settle(session: &mut Session<'_>, row: &Row, settled: &Settled) -> Result<(), Fault> {
    let (state, version, result) = row::encode(settled);
    let steps = if *settled == Settled::Unknown { row.steps } else { 0 };
    let settle = |session: &mut Session<'_>| {
        session.execute(
            Query::Settle,
            params![row.id, row.owner.as_bytes(), state, version, result, row.expires_at, steps],
        )
    };
    if row.steps == steps {
        settle(session)?;
        return Ok(());
    }
    session.atomically(|session| {
        session.execute(Query::DeleteSteps, [row.id])?;
        settle(session)
    })?;
    Ok(())
}

/// [`release`](crate::store::Store::release).
pub(super) struct LetGo {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) how: Release,
}

impl Operation for LetGo {
    type Answer = Write;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Write>, Fault> {
        let Some((row, now)) = session.current(&self.key)? else { return Ok(Some(Write::Applied)) };
        let RowState::Running { lease_until, .. } = row.state else { return Ok(Some(Write::Lost)) };
        if row.owner != self.owner {
            return Ok(Some(Write::Lost));
        }
        let (owner, attempt) = match self.how {
            Release::Forget => {
                reopen(session, &row, now)?;
                return Ok(Some(Write::Applied));
            }
            Release::Unused if row.attempt <= 1 && session.steps(&row)?.is_empty() => {
                session.delete(&row)?;
                return Ok(Some(Write::Applied));
            }
            Release::Unused => (OwnerToken::NOBODY, row.attempt.saturating_sub(1)),
            // The answer of an earlier call may have been lost: the lease does not end twice.
            Release::Abandon if lease_until <= now => return Ok(Some(Write::Applied)),
            Release::Abandon => (row.owner, row.attempt),
        };
        let (until, expires) = ended(&row, now);
        session.execute(Query::Abandon, params![row.id, until, expires, attempt, owner.as_bytes()])?;
        Ok(Some(Write::Applied))
    }
}

/// The end of the lease and of the record, if the lease is to be over by now: the record is still remembered as long
/// after the lease as it would have been.
fn ended(row: &Row, now: Micros) -> (Micros, Micros) {
    match row.state {
        RowState::Running { lease_until, .. } if lease_until > now => {
            (now, now.saturating_add(row.expires_at.saturating_sub(lease_until)))
        }
        RowState::Running { lease_until, .. } => (lease_until, row.expires_at),
        RowState::Settled(_) => (now, row.expires_at),
    }
}

/// Makes room for the next call: deletes the record, or, if it has finished steps, keeps those and nothing else, under
/// the owner and the count that `row` has.
pub(super) fn reopen(session: &mut Session<'_>, row: &Row, now: Micros) -> Result<(), Fault> {
    let steps = session.steps(row)?;
    let done = steps.iter().filter(|step| matches!(step.state, StepState::Done(_))).count();
    if done == 0 {
        return session.delete(row);
    }
    let done = i64::try_from(done).map_err(|_| Fault::Unreadable("number of steps"))?;
    let (until, expires) = ended(row, now);
    session.atomically(|session| {
        session.execute(Query::DeleteBegunSteps, [row.id])?;
        session
            .execute(Query::Reopen, params![row.id, row.owner.as_bytes(), row.attempt, until, expires, done])
    })?;
    Ok(())
}

/// [`put_step`](crate::store::Store::put_step).
pub(super) struct PutOne {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) step: Step,
    pub(super) lease: Lease,
}

impl Operation for PutOne {
    type Answer = PutStep;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<PutStep>, Fault> {
        let Some((row, now)) = session.current(&self.key)? else { return Ok(Some(PutStep::Lost)) };
        if !row.is_running_under(self.owner) {
            return Ok(Some(PutStep::Lost));
        }
        let before =
            session.steps(&row)?.into_iter().find(|step| step.name == self.step.name).map(|step| step.state);
        let (until, expires) = ends(self.lease, now);
        if let Some(StepState::Done(result)) = before {
            session.set_lease(&row, until, expires, false)?;
            return Ok(Some(PutStep::Exists(result)));
        }
        let (state, result) = row::encode_step(&self.step.state);
        session.atomically(|session| {
            session.execute(Query::PutStep, params![row.id, &*self.step.name, state, result])?;
            if before.is_none() {
                session.execute(Query::CountSteps, [row.id])?;
            }
            session.set_lease(&row, until, expires, false)
        })?;
        Ok(Some(PutStep::Stored))
    }
}
