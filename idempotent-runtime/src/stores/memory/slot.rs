//! One record, and how it changes. Where it is kept and who wakes up is not its business.

use std::sync::Arc;

use super::moment::Moment;
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{Grant, Lease, OwnerToken, PutStep, Record, Reserve, Settled, State, Step, StepState};

/// A record as it is kept: what [`Record`] shows, with moments in place of spans.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: RecordKey,
    pub(super) owner: OwnerToken,
    pub(super) attempt: u32,
    pub(super) fence: u64,
    pub(super) fingerprint: Fingerprint,
    pub(super) phase: Phase,
    pub(super) steps: Vec<Step>,
    pub(super) created: Moment,
    /// Only [`Expiry`](super::expiry::Expiry) moves it, or its index would be wrong.
    pub(super) expires: Moment,
}

/// [`State`], with a moment in place of a span.
#[derive(Debug)]
pub(super) enum Phase {
    Running { lease_ends: Moment, effects_begun: bool },
    Settled(Settled),
}

/// When the record of an attempt expires that gets `lease` now, if nothing more is heard of it.
pub(super) fn silent_until(lease: Lease, now: Moment) -> Moment {
    now.after(lease.duration).after(lease.unknown_ttl)
}

impl Slot {
    /// The record of a first attempt.
    pub(super) fn new(request: &Reserve<'_>, fence: u64, now: Moment) -> Self {
        Self {
            key: request.key.clone(),
            owner: request.owner,
            attempt: 1,
            fence,
            fingerprint: request.fingerprint,
            phase: Phase::Running { lease_ends: now.after(request.lease.duration), effects_begun: false },
            steps: Vec::new(),
            created: now,
            expires: silent_until(request.lease, now),
        }
    }

    /// Whether `owner` has the record, and it is still running, be its lease over or not.
    pub(super) fn runs_under(&self, owner: OwnerToken) -> bool {
        self.owner == owner && matches!(self.phase, Phase::Running { .. })
    }

    pub(super) fn is_abandoned(&self, now: Moment) -> bool {
        matches!(self.phase, Phase::Running { lease_ends, .. } if lease_ends.has_come(now))
    }

    /// Whether an attempt is at work.
    pub(super) fn is_live(&self, now: Moment) -> bool {
        matches!(self.phase, Phase::Running { lease_ends, .. } if !lease_ends.has_come(now))
    }

    /// Whether an operator may settle it: nobody else will.
    pub(super) fn waits_for_somebody(&self, now: Moment) -> bool {
        self.is_abandoned(now)
            || matches!(self.phase, Phase::Settled(Settled::Unknown | Settled::NotRetained))
    }

    /// Whether `request` may take over.
    pub(super) fn yields_to(&self, request: &Reserve<'_>, now: Moment) -> bool {
        match self.phase {
            Phase::Running { lease_ends, effects_begun } => {
                lease_ends.has_come(now)
                    && self.fingerprint == request.fingerprint
                    && request.take_over.allows(effects_begun, &self.steps)
            }
            Phase::Settled(_) => false,
        }
    }

    /// Gives a running record's attempt a fresh lease.
    pub(super) fn renew(&mut self, lease: Lease, now: Moment) {
        if let Phase::Running { lease_ends, .. } = &mut self.phase {
            *lease_ends = now.after(lease.duration);
        }
    }

    pub(super) fn begin_effects(&mut self) {
        if let Phase::Running { effects_begun, .. } = &mut self.phase {
            *effects_begun = true;
        }
    }

    /// Ends the lease now. `None` if it had ended before; else the moment at which the record now expires.
    pub(super) fn end_lease(&mut self, now: Moment) -> Option<Moment> {
        match &mut self.phase {
            Phase::Running { lease_ends, .. } if !lease_ends.has_come(now) => {
                let unused = lease_ends.left(now);
                *lease_ends = now;
                Some(self.expires.before(unused))
            }
            _ => None,
        }
    }

    /// Takes away every trace of what was begun and not finished. Whether something finished is left.
    pub(super) fn forget_begun(&mut self) -> bool {
        self.steps.retain(|step| matches!(step.state, StepState::Done(_)));
        if let Phase::Running { effects_begun, .. } = &mut self.phase {
            *effects_begun = false;
        }
        !self.steps.is_empty()
    }

    /// Whether this is the first attempt, and it has written nothing.
    pub(super) fn is_untouched(&self) -> bool {
        self.attempt <= 1 && self.steps.is_empty()
    }

    pub(super) fn put_step(&mut self, step: &Step) -> PutStep {
        match self.steps.iter_mut().find(|known| known.name == step.name) {
            Some(Step { state: StepState::Done(bytes), .. }) => return PutStep::Exists(Arc::clone(bytes)),
            Some(known) => known.state = step.state.clone(),
            None => self.steps.push(step.clone()),
        }
        PutStep::Stored
    }

    pub(super) fn settle(&mut self, settled: Settled) {
        // An unknown record may be sent back to work, which must then go on after its finished steps.
        if settled != Settled::Unknown {
            self.steps = Vec::new();
        }
        self.phase = Phase::Settled(settled);
    }

    pub(super) fn grant(&self) -> Grant {
        Grant { attempt: self.attempt, fence: self.fence, steps: self.steps.clone() }
    }

    pub(super) fn record(&self, now: Moment) -> Record {
        let state = match &self.phase {
            Phase::Running { lease_ends, effects_begun } => {
                State::Running { lease_left: lease_ends.left(now), effects_begun: *effects_begun }
            }
            Phase::Settled(settled) => State::Settled(settled.clone()),
        };
        Record {
            key: self.key.clone(),
            owner: self.owner,
            attempt: self.attempt,
            fence: self.fence,
            fingerprint: self.fingerprint,
            state,
            steps: self.steps.clone(),
            created_at: self.created.into(),
            expires_in: self.expires.left(now),
        }
    }
}
