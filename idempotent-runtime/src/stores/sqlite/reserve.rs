//! Granting the right to run, or showing what stands in the way.

use rusqlite::params;

use super::attempt::settle;
use super::fault::Fault;
use super::job::Operation;
use super::row::{Micros, Row, RowState, micros};
use super::session::{Query, Session};
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{Grant, Lease, OwnerToken, Reserve, Reserved, Settled, Step, TakeOver};

/// [`Reserve`], owned.
pub(super) struct ReserveKey {
    key: RecordKey,
    owner: OwnerToken,
    fingerprint: Fingerprint,
    lease: Lease,
    take_over: TakeOver,
    max_attempts: u32,
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

/// What a request makes of the row that it finds.
enum Verdict {
    /// The record stands in the way, and stays as it is.
    Held,
    /// The record is this attempt's own already.
    Again,
    /// The attempt before is given up, and this one follows it.
    TakeOver,
    /// There have been enough attempts.
    Exhausted,
}

impl ReserveKey {
    fn judge(&self, row: &Row, steps: &[Step], now: Micros) -> Verdict {
        let RowState::Running { lease_until, effects_begun } = row.state else {
            return Verdict::Held;
        };
        if row.owner == self.owner {
            Verdict::Again
        } else if lease_until > now
            || row.fingerprint != self.fingerprint
            || !self.take_over.allows(effects_begun, steps)
        {
            Verdict::Held
        } else if row.attempt >= self.max_attempts {
            Verdict::Exhausted
        } else {
            Verdict::TakeOver
        }
    }

    /// The end of a lease that begins now, and of the record if nothing more is heard.
    fn ends(&self, now: Micros) -> (Micros, Micros) {
        ends(self.lease, now)
    }

    /// A record of a new generation, in place of the expired `old` one. A new row, so that the list goes by creation.
    fn create(&self, session: &mut Session<'_>, old: Option<&Row>) -> Result<Reserved, Fault> {
        let now = session.now();
        let fence = session.next_fence(old.map_or(0, |old| old.fence), now);
        let (until, expires) = self.ends(now);
        let insert = |session: &mut Session<'_>| {
            session.execute(
                Query::Insert,
                params![
                    self.key.as_str(),
                    self.key.operation().as_str(),
                    self.owner.as_bytes(),
                    fence,
                    self.fingerprint.version(),
                    self.fingerprint.digest(),
                    until,
                    now,
                    expires
                ],
            )
        };
        if let Some(old) = old {
            session.atomically(|session| {
                session.delete(old)?;
                insert(session)
            })?;
        } else {
            insert(session)?;
        }
        Ok(Reserved::Granted(Grant { attempt: 1, fence: fence.unsigned_abs(), steps: Vec::new() }))
    }

    fn grant(
        &self,
        session: &mut Session<'_>,
        row: &Row,
        steps: Vec<Step>,
        (attempt, fence): (u32, i64),
        now: Micros,
    ) -> Result<Reserved, Fault> {
        let (until, expires) = self.ends(now);
        session
            .execute(Query::Grant, params![row.id, self.owner.as_bytes(), attempt, fence, until, expires])?;
        Ok(Reserved::Granted(Grant { attempt, fence: fence.unsigned_abs(), steps }))
    }

    /// Settles the record as unknown. Its steps stay: if somebody finds out that it did not happen, the next call
    /// continues after them.
    fn exhaust(
        &self,
        session: &mut Session<'_>,
        mut row: Row,
        steps: Vec<Step>,
        now: Micros,
    ) -> Result<Reserved, Fault> {
        row.owner = OwnerToken::NOBODY;
        row.state = RowState::Settled(Settled::Unknown);
        row.expires_at = now.saturating_add(micros(self.lease.unknown_ttl));
        settle(session, &row, &Settled::Unknown)?;
        Ok(Reserved::Held(row.into_record(self.key.clone(), steps, now)))
    }
}

impl Operation for ReserveKey {
    type Answer = Reserved;
    const READS: bool = true;
    const MAKES_RECORD: bool = true;

    fn read(&mut self, session: &mut Session<'_>) -> Result<Option<Reserved>, Fault> {
        let Some((row, now)) = session.current(&self.key)? else { return Ok(None) };
        let steps = session.steps(&row)?;
        Ok(match self.judge(&row, &steps, now) {
            Verdict::Held => Some(Reserved::Held(row.into_record(self.key.clone(), steps, now))),
            Verdict::Again | Verdict::TakeOver | Verdict::Exhausted => None,
        })
    }

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Reserved>, Fault> {
        let Some(row) = session.row(&self.key)? else { return self.create(session, None).map(Some) };
        let now = session.now();
        if row.expires_at <= now {
            return self.create(session, Some(&row)).map(Some);
        }
        let steps = session.steps(&row)?;
        Ok(Some(match self.judge(&row, &steps, now) {
            Verdict::Held => Reserved::Held(row.into_record(self.key.clone(), steps, now)),
            Verdict::Again => self.grant(session, &row, steps, (row.attempt, row.fence), now)?,
            Verdict::TakeOver => {
                let fence = session.next_fence(row.fence, now);
                self.grant(session, &row, steps, (row.attempt.saturating_add(1), fence), now)?
            }
            Verdict::Exhausted => self.exhaust(session, row, steps, now)?,
        }))
    }
}

/// The end of a lease that begins at `now`, and of the record if nothing more is heard.
pub(super) fn ends(lease: Lease, now: Micros) -> (Micros, Micros) {
    let until = now.saturating_add(micros(lease.duration));
    (until, until.saturating_add(micros(lease.unknown_ttl)))
}
