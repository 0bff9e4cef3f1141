//! The callers, the network between them and the store, and all that may happen next.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use crate::promises::{Calls, History, Promise};
pub use crate::record::Repair;
use crate::record::{
    Answer, CallId, Mark, OPERATOR, Op, Phase as RecordPhase, Record, Release, Request, Settled, Token,
    apply, repair, waits_for_somebody,
};
use crate::setting::{Body, Bounds, OnCrash, OnError, Setting};

/// The machine, and which promise is looked at.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// Callers, policies, bounds and protections.
    pub setting: Setting,
    /// The one promise to check; `None`: all of them as one.
    ///
    /// One at a time, because the checker keeps the last counterexample of a property while it looks for others.
    pub only: Option<Promise>,
    /// Something that has to happen in some history, checked in place of the promises.
    pub witness: Option<Witness>,
}

/// What must be possible, so that the promises are not kept by doing nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// A duplicate is given a stored result.
    Replay,
    /// A second attempt runs.
    TakeOver,
    /// A late completion is refused.
    StaleCompletion,
    /// A step is skipped because an earlier attempt has done it.
    SkippedStep,
    /// An operator's answer is replayed.
    Repaired,
}

/// All there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The store.
    pub record: Option<Record>,
    /// The callers.
    pub workers: Vec<Worker>,
    /// Requests on their way.
    pub sent: BTreeSet<Request>,
    /// Calls that were dropped while they asked for the right to run: who is granted it gives it back.
    pub dropped: Calls,
    /// The token that the operator saw.
    pub operator: Option<Token>,
    /// What may still go wrong.
    pub left: Bounds,
    /// What the promises are judged by.
    pub history: History,
    /// What was seen to be possible.
    pub seen: Option<Seen>,
}

/// A witness in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen;

/// One caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    /// How many calls it will still make.
    pub calls_left: u8,
    /// Its call; 0 before the first.
    pub call: CallId,
    /// The token of its call.
    pub token: Token,
    /// How far the call is.
    pub phase: Phase,
    /// The number of the attempt.
    pub attempt: u8,
    /// Whether it was granted after the step was done.
    pub after_step: bool,
    /// Whether it has said that an effect may have happened, or a step is in doubt.
    pub may_have_acted: bool,
    /// Whether the body was given an error of the library.
    pub gave_error: bool,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// There is none.
    Idle,
    /// It has asked for the right to run.
    Reserving,
    /// It waits for another one's end.
    Waiting,
    /// It may run.
    Reserved {
        /// Whether the step is done already.
        step_done: bool,
    },
    /// The body has asked to write down that it begins to act.
    Marking,
    /// The body may act.
    MayAct,
    /// The body has acted in its step, and stores the result.
    StoringStep,
    /// The body is about to answer.
    Acted,
    /// The body was given an error, and is about to return it.
    Refused,
    /// The answer is being recorded.
    Recording(Op),
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after what happens")]
pub enum Action {
    Call(usize),
    Poll(usize),
    AnswerOk(usize),
    AnswerErr(usize),
    Renew(usize),
    LookAgain(usize),
    Crash(usize),
    Drop(usize),
    GiveUp(usize),
    /// The request arrives, and so does its reply.
    Deliver(Request),
    /// The request arrives, the reply is lost, and the request is sent again.
    DeliverAndLoseReply(Request),
    /// The request and its reply arrive, and a copy of the request is still on its way.
    DeliverAndDuplicate(Request),
    LoseRequest(Request),
    EndLease,
    Expire,
    OperatorLooks,
    OperatorActs(Repair),
}

impl Worker {
    fn is_in_body(&self) -> bool {
        matches!(
            self.phase,
            Phase::Marking | Phase::MayAct | Phase::StoringStep | Phase::Acted | Phase::Refused
        )
    }
}

impl Protocol {
    /// The machine with every promise.
    pub fn new(setting: Setting) -> Self {
        Self { setting, only: None, witness: None }
    }

    fn fingerprint(&self, worker: usize) -> u8 {
        u8::from(self.setting.other_arguments && worker + 1 == usize::from(self.setting.workers))
    }

    fn worker_of(&self, call: CallId) -> usize {
        usize::from((call - 1) / self.setting.calls)
    }

    fn send(state: &mut State, index: usize, op: Op) {
        let worker = &state.workers[index];
        state.sent.insert(Request { from: worker.call, token: worker.token, op });
    }

    /// Whether an answer that the worker waits for can still come.
    fn is_asking(state: &State, worker: &Worker) -> bool {
        let is_meant = |op: Op| match (worker.phase, op) {
            (Phase::Reserving, Op::Reserve { .. })
            | (Phase::Marking, Op::BeginEffects | Op::PutStep(Mark::Begun))
            | (Phase::StoringStep, Op::PutStep(Mark::Done)) => true,
            (Phase::Recording(waited), op) => waited == op,
            _ => false,
        };
        state.sent.iter().any(|request| request.from == worker.call && is_meant(request.op))
    }

    fn waits_for_answer(worker: &Worker) -> bool {
        matches!(worker.phase, Phase::Reserving | Phase::Marking | Phase::StoringStep | Phase::Recording(_))
    }

    fn poll(&self, state: &mut State, index: usize) {
        let Worker { call, phase, after_step, .. } = state.workers[index];
        let excused = state.history.excused.contains(call);
        match phase {
            Phase::Reserved { step_done } => {
                let silent = !state.history.polled.is_empty();
                let judged = self.setting.on_crash == OnCrash::Refuse && self.setting.body != Body::Step;
                if silent && judged && !excused {
                    state.history.broken.note(Promise::NoBodyAfterSilence);
                }
                if !excused {
                    state.history.polled.insert(call);
                }
                let (phase, op) = match self.setting.body {
                    Body::Plain => (Phase::Acted, None),
                    Body::Effects => (Phase::Marking, Some(Op::BeginEffects)),
                    Body::Step if step_done => {
                        self.see(state, Witness::SkippedStep);
                        (Phase::Acted, None)
                    }
                    Body::Step if self.setting.on_crash == OnCrash::Retry => (Phase::MayAct, None),
                    Body::Step => (Phase::Marking, Some(Op::PutStep(Mark::Begun))),
                };
                state.workers[index].phase = phase;
                if let Some(op) = op {
                    Self::send(state, index, op);
                }
                if state.workers[index].attempt > 1 {
                    self.see(state, Witness::TakeOver);
                }
            }
            Phase::MayAct => {
                let judged = match self.setting.body {
                    Body::Plain => false,
                    Body::Effects | Body::Step => self.setting.on_crash != OnCrash::Retry,
                };
                if judged && !excused {
                    if !state.history.acted.is_empty() {
                        state.history.broken.note(Promise::NoEffectAgain);
                    }
                    state.history.acted.insert(call);
                }
                if self.setting.body == Body::Step {
                    if after_step && !excused {
                        state.history.broken.note(Promise::NoStepAgain);
                    }
                    state.workers[index].phase = Phase::StoringStep;
                    Self::send(state, index, Op::PutStep(Mark::Done));
                } else {
                    state.workers[index].phase = Phase::Acted;
                }
            }
            _ => {}
        }
    }

    fn answer(&self, state: &mut State, index: usize, is_ok: bool) {
        let Worker { call, may_have_acted, gave_error, .. } = state.workers[index];
        let op = if is_ok {
            Op::Complete(Settled::Completed(call))
        } else {
            match self.setting.on_error {
                OnError::Replay if !gave_error => Op::Complete(Settled::Failed(call)),
                OnError::Retry | OnError::Replay if !may_have_acted => {
                    // The function says that nothing happened.
                    state.history.polled.remove(call);
                    Op::Release(Release::Forget)
                }
                _ => Op::Complete(Settled::Unknown),
            }
        };
        state.workers[index].phase = Phase::Recording(op);
        Self::send(state, index, op);
    }

    /// The future is dropped. What is under way goes on without it.
    fn drop_call(&self, state: &mut State, index: usize) {
        let worker = state.workers[index];
        match worker.phase {
            Phase::Reserving => state.dropped.insert(worker.call),
            Phase::Reserved { .. } => Self::send(state, index, Op::Release(Release::Unused)),
            _ if worker.is_in_body() => {
                let abandons = self.setting.protections.drop_in_body_abandons;
                let how = if abandons { Release::Abandon } else { Release::Forget };
                Self::send(state, index, Op::Release(how));
            }
            _ => {}
        }
        state.workers[index].phase = Phase::Idle;
    }

    fn give_up(state: &mut State, index: usize) {
        match state.workers[index].phase {
            Phase::Reserving => {
                Self::send(state, index, Op::Release(Release::Unused));
                state.workers[index].phase = Phase::Idle;
            }
            Phase::Marking | Phase::StoringStep => {
                let worker = &mut state.workers[index];
                worker.gave_error = true;
                worker.phase = Phase::Refused;
            }
            // The caller has its value, unrecorded as far as it knows; the recording goes on.
            _ => state.workers[index].phase = Phase::Idle,
        }
    }

    fn deliver(&self, state: &mut State, request: Request, reply_arrives: bool) {
        let before = state.record;
        let answer = apply(&mut state.record, request, &self.setting);
        Self::judge_write(state, before, request);
        if request.op == Op::PutStep(Mark::Done) && answer == Answer::Applied {
            state.history.step_done = true;
            state.history.acted = Calls::default();
        }
        if !reply_arrives {
            return;
        }
        let index = self.worker_of(request.from);
        let is_current = state.workers[index].call == request.from;
        match request.op {
            Op::Reserve { .. } if is_current && state.workers[index].phase == Phase::Reserving => {
                self.reserved(state, index, answer);
            }
            Op::Reserve { .. } => {
                if let (Answer::Granted(record), true) = (answer, state.dropped.contains(request.from)) {
                    let op = Op::Release(Release::Unused);
                    state.sent.insert(Request { from: request.from, token: record.owner, op });
                }
            }
            _ if !is_current => {}
            Op::BeginEffects | Op::PutStep(Mark::Begun) => {
                self.marked(&mut state.workers[index], answer);
            }
            Op::PutStep(_) => {
                let worker = &mut state.workers[index];
                if worker.phase == Phase::StoringStep {
                    if answer == Answer::Lost {
                        worker.gave_error = true;
                        worker.phase = Phase::Refused;
                    } else {
                        worker.may_have_acted = false;
                        worker.phase = Phase::Acted;
                    }
                }
            }
            Op::Complete(_) | Op::Release(_) => {
                if state.workers[index].phase == Phase::Recording(request.op) {
                    self.recorded(state, index, request.op, answer);
                }
            }
            Op::Renew => {}
        }
    }

    fn reserved(&self, state: &mut State, index: usize, answer: Answer) {
        let fingerprint = self.fingerprint(index);
        let worker = &mut state.workers[index];
        let record = match answer {
            Answer::Granted(record) => {
                worker.token = record.owner;
                worker.attempt = record.attempt;
                worker.after_step = state.history.step_done;
                worker.phase = Phase::Reserved { step_done: record.step == Mark::Done };
                if record.fingerprint != fingerprint {
                    state.history.broken.note(Promise::OneFingerprint);
                }
                return;
            }
            Answer::Held(record) => record,
            _ => return,
        };
        worker.phase = Phase::Idle;
        let runs = matches!(record.phase, RecordPhase::Running { .. });
        if runs && record.holder == worker.call {
            state.history.broken.note(Promise::NotBlockedByItself);
        }
        if record.fingerprint != fingerprint {
            return;
        }
        match record.phase {
            RecordPhase::Running { lease_over: false } if self.setting.wait => worker.phase = Phase::Waiting,
            RecordPhase::Running { lease_over: false } => {}
            RecordPhase::Running { lease_over: true } => {
                if self.setting.on_crash == OnCrash::Retry {
                    state.history.broken.note(Promise::NobodyWaitsForEver);
                }
            }
            RecordPhase::Settled(settled) => {
                if let Some(value) = settled.value() {
                    if state.history.stored != Some(value) {
                        state.history.broken.note(Promise::OneResult);
                    }
                    self.see(state, Witness::Replay);
                    if value == OPERATOR {
                        self.see(state, Witness::Repaired);
                    }
                }
            }
        }
    }

    fn marked(&self, worker: &mut Worker, answer: Answer) {
        if worker.phase != Phase::Marking {
            return;
        }
        worker.phase = match answer {
            Answer::Lost if self.setting.protections.lost_mark_stops_body => {
                worker.gave_error = true;
                Phase::Refused
            }
            Answer::Exists => Phase::Acted,
            _ => {
                worker.may_have_acted = true;
                Phase::MayAct
            }
        };
    }

    fn recorded(&self, state: &mut State, index: usize, op: Op, answer: Answer) {
        let worker = &mut state.workers[index];
        worker.phase = Phase::Idle;
        let Op::Complete(settled) = op else { return };
        let is_stored = state.record.is_some_and(|record| {
            record.phase == RecordPhase::Settled(settled) && record.holder == worker.call
        });
        let told_executed = answer == Answer::Applied || !self.setting.protections.lost_completion_is_told;
        if told_executed != is_stored && (told_executed || state.record.is_some()) {
            state.history.broken.note(Promise::OutcomeIsTrue);
        }
        if answer == Answer::Lost {
            self.see(state, Witness::StaleCompletion);
        }
    }

    /// What a request has done to the record, whoever hears of it.
    fn judge_write(state: &mut State, before: Option<Record>, request: Request) {
        let history = &mut state.history;
        if before != state.record {
            let is_wrong = match (before, request.op) {
                (Some(before), Op::Reserve { .. }) => {
                    let is_own = before.holder == request.from;
                    matches!(before.phase, RecordPhase::Settled(_)) || (before.is_live() && !is_own)
                }
                (None, Op::Reserve { .. }) => false,
                (Some(before), _) => {
                    before.holder != request.from || matches!(before.phase, RecordPhase::Settled(_))
                }
                (None, _) => true,
            };
            if is_wrong {
                history.broken.note(Promise::NothingStaleWrites);
            }
        }
        if let Some(Record { phase: RecordPhase::Settled(settled), .. }) = state.record
            && let Some(value) = settled.value()
        {
            if history.stored.is_some_and(|stored| stored != value) {
                history.broken.note(Promise::OneResult);
            }
            history.stored = Some(value);
        }
    }

    /// From now on what was done before does not count: its time is over, or somebody has looked.
    fn excuse(state: &mut State, stored: Option<CallId>) {
        let step_done = state.record.is_some_and(|record| record.step == Mark::Done);
        let history = &mut state.history;
        history.polled = Calls::default();
        history.acted = Calls::default();
        history.stored = stored;
        history.step_done = step_done;
        for worker in &mut state.workers {
            if worker.is_in_body() || matches!(worker.phase, Phase::Reserved { .. }) {
                history.excused.insert(worker.call);
            }
        }
    }

    fn see(&self, state: &mut State, what: Witness) {
        if self.witness == Some(what) {
            state.seen = Some(Seen);
        }
    }

    /// Whether somebody is at work for the record, so that its lease ends early only by mishap.
    fn is_attended(&self, state: &State, record: Record) -> bool {
        if !self.setting.protections.renewal_ends_with_body {
            return true;
        }
        state.workers.iter().any(|worker| {
            worker.call == record.holder && !matches!(worker.phase, Phase::Idle | Phase::Waiting)
        })
    }

    /// Whether something is wrong with an end: somebody waits, or the next call would not get anywhere.
    fn is_stuck(&self, state: &State) -> bool {
        let waits = state.workers.iter().any(|worker| worker.phase != Phase::Idle);
        let refused = state.record.is_some_and(|record| {
            let over = record.attempt >= self.setting.max_attempts;
            let refused = self.setting.on_crash == OnCrash::Retry
                && record.is_abandoned()
                && !over
                && !record.yields_to(record.fingerprint, &self.setting);
            record.is_live() || refused
        });
        if !waits && !refused {
            return false;
        }
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.is_empty()
    }

    fn keeps(&self, state: &State) -> bool {
        match (self.witness, self.only) {
            (Some(_), _) => state.seen.is_none(),
            (None, Some(Promise::NobodyWaitsForEver)) => {
                !state.history.broken.contains(Promise::NobodyWaitsForEver) && !self.is_stuck(state)
            }
            (None, Some(promise)) => !state.history.broken.contains(promise),
            (None, None) => state.history.broken.is_empty() && !self.is_stuck(state),
        }
    }

    fn worker_actions(state: &State, index: usize, actions: &mut Vec<Action>) {
        let (worker, left) = (&state.workers[index], &state.left);
        match worker.phase {
            Phase::Idle => {
                if worker.calls_left > 0 {
                    actions.push(Action::Call(index));
                }
                return;
            }
            Phase::Waiting if !state.record.is_some_and(|record| record.is_live()) => {
                actions.push(Action::LookAgain(index));
            }
            Phase::Reserved { .. } | Phase::MayAct => actions.push(Action::Poll(index)),
            Phase::Acted => actions.extend([Action::AnswerOk(index), Action::AnswerErr(index)]),
            Phase::Refused => actions.push(Action::AnswerErr(index)),
            _ => {}
        }
        if Self::waits_for_answer(worker) && (left.give_ups > 0 || !Self::is_asking(state, worker)) {
            actions.push(Action::GiveUp(index));
        }
        if worker.is_in_body() && left.renewals > 0 {
            actions.push(Action::Renew(index));
        }
        if left.crashes > 0 {
            actions.push(Action::Crash(index));
        }
        if left.drops > 0 {
            actions.push(Action::Drop(index));
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let worker = Worker {
            calls_left: self.setting.calls,
            call: 0,
            token: 0,
            phase: Phase::Idle,
            attempt: 0,
            after_step: false,
            may_have_acted: false,
            gave_error: false,
        };
        vec![State {
            record: None,
            workers: vec![worker; usize::from(self.setting.workers)],
            sent: BTreeSet::new(),
            dropped: Calls::default(),
            operator: None,
            left: self.setting.bounds,
            history: History::default(),
            seen: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for index in 0..state.workers.len() {
            Self::worker_actions(state, index, actions);
        }
        for request in &state.sent {
            actions.push(Action::Deliver(*request));
            if state.left.losses > 0 {
                actions.push(Action::DeliverAndLoseReply(*request));
                actions.push(Action::DeliverAndDuplicate(*request));
                actions.push(Action::LoseRequest(*request));
            }
        }
        if let Some(record) = &state.record {
            if record.is_live() && (state.left.lease_ends > 0 || !self.is_attended(state, *record)) {
                actions.push(Action::EndLease);
            }
            let expires = match record.phase {
                RecordPhase::Settled(_) => true,
                RecordPhase::Running { .. } => !self.setting.protections.no_ttl_while_running,
            };
            if expires && state.left.expiries > 0 {
                actions.push(Action::Expire);
            }
            if waits_for_somebody(*record) && state.operator.is_none() && state.left.repairs > 0 {
                actions.push(Action::OperatorLooks);
            }
        }
        if state.operator.is_some() {
            actions.extend([Repair::Done, Repair::NotDone, Repair::Forget].map(Action::OperatorActs));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        let state = &mut next;
        match action {
            Action::Call(index) => {
                let fingerprint = self.fingerprint(index);
                let first = u8::try_from(index).ok()? * self.setting.calls + 1;
                let worker = &mut state.workers[index];
                let call = first + self.setting.calls - worker.calls_left;
                *worker = Worker {
                    calls_left: worker.calls_left - 1,
                    call,
                    token: call,
                    phase: Phase::Reserving,
                    attempt: 0,
                    after_step: false,
                    may_have_acted: false,
                    gave_error: false,
                };
                Self::send(state, index, Op::Reserve { fingerprint });
            }
            Action::Poll(index) => self.poll(state, index),
            Action::AnswerOk(index) => self.answer(state, index, true),
            Action::AnswerErr(index) => self.answer(state, index, false),
            Action::Renew(index) => {
                state.left.renewals -= 1;
                Self::send(state, index, Op::Renew);
            }
            Action::LookAgain(index) => {
                let fingerprint = self.fingerprint(index);
                state.workers[index].phase = Phase::Reserving;
                Self::send(state, index, Op::Reserve { fingerprint });
            }
            Action::Crash(index) => {
                state.left.crashes -= 1;
                state.workers[index].phase = Phase::Idle;
            }
            Action::Drop(index) => {
                state.left.drops -= 1;
                self.drop_call(state, index);
            }
            Action::GiveUp(index) => {
                if Self::is_asking(state, &state.workers[index]) {
                    state.left.give_ups -= 1;
                }
                Self::give_up(state, index);
            }
            Action::Deliver(request) => {
                state.sent.remove(&request);
                self.deliver(state, request, true);
            }
            Action::DeliverAndLoseReply(request) => {
                state.left.losses -= 1;
                self.deliver(state, request, false);
            }
            Action::DeliverAndDuplicate(request) => {
                state.left.losses -= 1;
                self.deliver(state, request, true);
            }
            Action::LoseRequest(request) => {
                state.left.losses -= 1;
                state.sent.remove(&request);
            }
            Action::EndLease => {
                let record = state.record?;
                if self.is_attended(state, record) {
                    state.left.lease_ends -= 1;
                }
                state.record.as_mut()?.phase = RecordPhase::Running { lease_over: true };
            }
            Action::Expire => {
                state.left.expiries -= 1;
                let gone = state.record.take()?;
                if matches!(gone.phase, RecordPhase::Settled(_)) {
                    Self::excuse(state, None);
                }
            }
            Action::OperatorLooks => {
                state.left.repairs -= 1;
                state.operator = state.record.map(|record| record.owner);
            }
            Action::OperatorActs(how) => {
                let seen = state.operator.take()?;
                let replaces = self.setting.protections.resolve_replaces_token;
                if repair(&mut state.record, seen, how, replaces) {
                    Self::excuse(state, (how == Repair::Done).then_some(OPERATOR));
                }
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("kept", |model: &Self, state| model.keeps(state))]
    }
}
