//! The one record, and what each request does to it: the contract of the store, without time and bytes.

use crate::setting::{Setting, TakeOver};

/// One call of the function. A call makes at most one attempt, so this is also a token that nobody else has.
pub type CallId = u8;

/// The call under whose id the operator's answers are kept.
pub const OPERATOR: CallId = 15;

/// What a write is compared by. With [`random_tokens`](crate::Protections::random_tokens) it is the call's id; without,
/// a count that starts again with each record.
pub type Token = u8;

/// What the store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Who may change it, as the store knows it.
    pub owner: Token,
    /// Whose it really is. No request is judged by this; the properties are.
    pub holder: CallId,
    /// How many attempts there were.
    pub attempt: u8,
    /// The arguments.
    pub fingerprint: u8,
    /// Running or settled.
    pub phase: Phase,
    /// Whether an effect may have begun.
    pub effects_begun: bool,
    /// The one step.
    pub step: Mark,
}

/// Where the record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// An attempt is at work, or was.
    Running {
        /// Whether its lease has ended.
        lease_over: bool,
    },
    /// Closed.
    Settled(Settled),
}

/// How a record was settled. A value is known by the call that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Settled {
    /// With an `Ok`.
    Completed(CallId),
    /// With an `Err` for replay.
    Failed(CallId),
    /// Nobody knows.
    Unknown,
}

impl Settled {
    /// The value that duplicates are given.
    pub fn value(self) -> Option<CallId> {
        match self {
            Self::Completed(value) | Self::Failed(value) => Some(value),
            Self::Unknown => None,
        }
    }
}

/// How far the step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// Nothing is written of it.
    #[default]
    Absent,
    /// It may have had its effect.
    Begun,
    /// Its result is stored.
    Done,
}

/// How an attempt is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Nothing has happened.
    Forget,
    /// The body was never polled.
    Unused,
    /// Nobody knows.
    Abandon,
}

/// What is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// The right to run.
    Reserve {
        /// The call's arguments.
        fingerprint: u8,
    },
    /// A fresh lease.
    Renew,
    /// The mark that an effect may have happened.
    BeginEffects,
    /// A mark of the step.
    PutStep(Mark),
    /// The end with a result.
    Complete(Settled),
    /// The end without one.
    Release(Release),
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Whose it really is.
    pub from: CallId,
    /// Whose it says it is.
    pub token: Token,
    /// What is asked.
    pub op: Op,
}

/// What the store answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The caller may run; this is the record it owns.
    Granted(Record),
    /// The record in the way.
    Held(Record),
    /// Done as asked.
    Applied,
    /// The step was done before.
    Exists,
    /// Not the owner. Nothing was changed.
    Lost,
}

impl Record {
    /// Whether nobody works on it any more, as far as the store knows.
    pub fn is_abandoned(&self) -> bool {
        matches!(self.phase, Phase::Running { lease_over: true })
    }

    /// Whether an attempt counts as at work.
    pub fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Running { lease_over: false })
    }

    /// Whether a call with these arguments may take over.
    pub fn yields_to(&self, fingerprint: u8, setting: &Setting) -> bool {
        let in_doubt = self.effects_begun || self.step == Mark::Begun;
        let allowed = match setting.on_crash.take_over() {
            TakeOver::BetweenSteps => !in_doubt && self.step == Mark::Done,
            TakeOver::BeforeEffects => !in_doubt,
            TakeOver::Always => true,
        };
        let same = self.fingerprint == fingerprint || !setting.protections.equal_fingerprint_at_take_over;
        self.is_abandoned() && same && allowed
    }

    fn runs_under(self, token: Token, compared: bool) -> bool {
        matches!(self.phase, Phase::Running { .. }) && (self.owner == token || !compared)
    }

    fn renew(&mut self) {
        self.phase = Phase::Running { lease_over: false };
    }

    /// Takes away what was begun and not finished. Whether something finished is left.
    pub(crate) fn forget_begun(&mut self) -> bool {
        self.effects_begun = false;
        if self.step == Mark::Begun {
            self.step = Mark::Absent;
        }
        self.step == Mark::Done
    }

    fn settle(&mut self, settled: Settled) {
        if settled != Settled::Unknown {
            self.step = Mark::Absent;
        }
        self.phase = Phase::Settled(settled);
    }
}

/// Carries a request out, as one atomic change.
pub fn apply(record: &mut Option<Record>, request: Request, setting: &Setting) -> Answer {
    let on = setting.protections;
    let Request { token, op, .. } = request;
    match op {
        Op::Reserve { fingerprint } => reserve(record, request, fingerprint, setting),
        Op::Renew => owned(record, token, on.token_in_renew, Record::renew),
        Op::BeginEffects => owned(record, token, on.token_in_marks, |record| {
            record.effects_begun = true;
            record.renew();
        }),
        Op::PutStep(mark) => {
            if record.is_some_and(|record| {
                record.runs_under(token, on.token_in_marks) && record.step == Mark::Done
            }) {
                owned(record, token, on.token_in_marks, Record::renew);
                return Answer::Exists;
            }
            owned(record, token, on.token_in_marks, |record| {
                record.step = mark;
                record.renew();
            })
        }
        Op::Complete(settled) => {
            let already =
                matches!(record, Some(Record { owner, phase: Phase::Settled(_), .. }) if *owner == token);
            if already && on.complete_is_repeatable {
                return Answer::Applied;
            }
            let Some(found) = record else { return Answer::Lost };
            let is_owner = found.owner == token && matches!(found.phase, Phase::Running { .. });
            if !is_owner && on.token_in_complete {
                return Answer::Lost;
            }
            found.settle(settled);
            Answer::Applied
        }
        Op::Release(how) => release(record, token, how, setting),
    }
}

fn owned(
    record: &mut Option<Record>,
    token: Token,
    compared: bool,
    change: impl FnOnce(&mut Record),
) -> Answer {
    match record {
        Some(record) if record.runs_under(token, compared) => {
            change(record);
            Answer::Applied
        }
        _ => Answer::Lost,
    }
}

fn reserve(record: &mut Option<Record>, request: Request, fingerprint: u8, setting: &Setting) -> Answer {
    let on = setting.protections;
    let token_of = |attempt| if on.random_tokens { request.token } else { attempt };
    let Some(found) = record else {
        let new = Record {
            owner: token_of(1),
            holder: request.from,
            attempt: 1,
            fingerprint,
            phase: Phase::Running { lease_over: false },
            effects_begun: false,
            step: Mark::Absent,
        };
        *record = Some(new);
        return Answer::Granted(new);
    };
    let is_own = on.random_tokens && found.runs_under(request.token, true);
    if is_own && on.reserve_is_repeatable {
        found.renew();
        return Answer::Granted(*found);
    }
    if !found.yields_to(fingerprint, setting) {
        return Answer::Held(*found);
    }
    if found.attempt >= setting.max_attempts {
        (found.owner, found.holder) =
            if on.exhausted_is_nobodys { (0, 0) } else { (token_of(found.attempt), request.from) };
        found.settle(Settled::Unknown);
        return Answer::Held(*found);
    }
    found.attempt += 1;
    (found.owner, found.holder) = (token_of(found.attempt), request.from);
    found.renew();
    if !on.take_over_keeps_steps {
        found.step = Mark::Absent;
    }
    Answer::Granted(*found)
}

fn release(record: &mut Option<Record>, token: Token, how: Release, setting: &Setting) -> Answer {
    let on = setting.protections;
    let Some(found) = record else { return Answer::Applied };
    if on.token_in_release && !found.runs_under(token, true) {
        return Answer::Lost;
    }
    if matches!(found.phase, Phase::Settled(_)) {
        *record = None;
        return Answer::Applied;
    }
    let nothing_to_keep = match how {
        Release::Forget => !found.forget_begun() || !on.forget_keeps_steps,
        Release::Unused => {
            (found.attempt <= 1 && found.step == Mark::Absent) || !on.unused_keeps_earlier_attempts
        }
        Release::Abandon => false,
    };
    if nothing_to_keep {
        *record = None;
        return Answer::Applied;
    }
    found.phase = Phase::Running { lease_over: true };
    if how == Release::Unused {
        found.attempt = found.attempt.saturating_sub(1);
        found.owner = 0;
        found.holder = 0;
    }
    Answer::Applied
}

/// What an operator does after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repair {
    /// Settles it with a result.
    Done,
    /// Sends it back to work.
    NotDone,
    /// Deletes it.
    Forget,
}

/// Whether an operator may settle the record: nobody else will.
pub fn waits_for_somebody(record: Record) -> bool {
    record.is_abandoned() || record.phase == Phase::Settled(Settled::Unknown)
}

/// An operator's compare-and-set. Whether it was done.
pub fn repair(record: &mut Option<Record>, seen: Token, how: Repair, replaces_token: bool) -> bool {
    let Some(found) = record else { return false };
    let waits = waits_for_somebody(*found);
    if found.owner != seen || !(waits || (how == Repair::Forget && !found.is_live())) {
        return false;
    }
    if replaces_token && how != Repair::Forget {
        found.owner = OPERATOR;
    }
    found.holder = OPERATOR;
    match how {
        Repair::Done => found.settle(Settled::Completed(OPERATOR)),
        Repair::NotDone if found.forget_begun() => {
            found.attempt = 0;
            found.phase = Phase::Running { lease_over: true };
        }
        Repair::NotDone | Repair::Forget => *record = None,
    }
    true
}
