//! Calls in transactions of their callers', beside calls under a lease, on one key of one database.
//!
//! What a transaction has written is seen by nobody until it is committed, and whoever wants to write the same record waits for
//! it. A commit whose answer is lost may still arrive, or not, while its caller tries again.

use stateright::{Model, Property};

/// How the callers call, how much may go wrong, and which safeguards hold.
#[derive(Clone, Debug)]
pub struct Transactions {
    /// How each of the callers calls, once.
    pub callers: Vec<Kind>,
    /// Whether an `Err` is stored, or its record dropped.
    pub replays_errors: bool,
    /// How much may go wrong.
    pub mishaps: Mishaps,
    /// Which safeguards hold.
    pub safeguards: Safeguards,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In a transaction of the caller's, which is begun again when the answer to its commit is lost.
    InTransaction,
    /// Under a lease, `on_crash = "refuse"`.
    UnderLease,
}

/// How often each thing may go wrong. Each may happen at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mishaps {
    /// Processes that die.
    pub crashes: u8,
    /// Calls that are dropped while their body runs; the caller goes on with the transaction.
    pub drops: u8,
    /// Bodies that fail after they have written.
    pub errors: u8,
    /// Callers that roll back after the call.
    pub rollbacks: u8,
    /// Commits whose answer is lost.
    pub lost_commits: u8,
    /// Bodies that roll the transaction back, begin another one, and write there.
    pub endings: u8,
}

/// What keeps the promises. The checker must find the harm in leaving any of them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a test takes away")]
pub struct Safeguards {
    /// The result is recorded in the transaction of the effects.
    pub one_commit: bool,
    /// Whoever finds the key taken by an open transaction waits for its end.
    pub waits_for_open: bool,
    /// What a failing body wrote is undone.
    pub undoes_errors: bool,
    /// The record of a call that was dropped stays in the transaction.
    pub keeps_dropped: bool,
    /// It is noticed that the transaction is not the one in which the call began.
    pub notices_ending: bool,
    /// Both kinds of calls look at the same record.
    pub one_table: bool,
}

impl Safeguards {
    /// The library as it is.
    pub const ALL: Self = Self {
        one_commit: true,
        waits_for_open: true,
        undoes_errors: true,
        keeps_dropped: true,
        notices_ending: true,
        one_table: true,
    };
}

/// What stands in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    /// Under a lease that is alive.
    AtWork,
    /// Nobody knows what happened.
    Silent,
    /// There is a result.
    Completed,
    /// There is an error.
    Failed,
}

/// What a transaction has written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pending {
    /// The record.
    pub row: Option<Row>,
    /// Whether the effect is there.
    pub effect: bool,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The call has not begun.
    Idle,
    /// The body may run.
    Granted,
    /// The body has written.
    Acted,
    /// The body has ended the transaction, begun another, and written there.
    Elsewhere,
    /// The call has ended in this way; its caller ends the transaction.
    Ended(Told),
    /// The caller has its answer.
    Done(Told),
    /// The process is dead.
    Dead,
}

/// What a caller is told, or what the call has ended with before the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// The value of its own body.
    Executed,
    /// A stored value.
    Replayed,
    /// An error, of the body or of the library.
    Error,
    /// Nothing: the call was dropped, or its transaction rolled back.
    Nothing,
}

/// All there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// What is committed under the key; the second is where calls under a lease look, if that is another table.
    pub committed: [Option<Row>; 2],
    /// How often the effect is committed.
    pub effects: u8,
    /// The callers, and what their open transactions have written.
    pub callers: Vec<(Phase, Pending)>,
    /// A transaction whose commit is on its way, with nobody to hear the answer.
    pub orphan: Option<Pending>,
    /// What may still go wrong.
    pub left: Mishaps,
}

/// What may happen next; the number is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after what happens")]
pub enum Step {
    Enter(usize),
    Act(usize),
    Succeed(usize),
    Fail(usize),
    EndTransaction(usize),
    Drop(usize),
    Commit(usize),
    LoseCommit(usize),
    RollBack(usize),
    Crash(usize),
    /// The commit that nobody hears of arrives, or its connection breaks before.
    Decide(bool),
    EndLease,
}

impl Moment {
    /// Whether another open transaction has written the record.
    fn is_taken(&self, caller: usize) -> bool {
        let others = self.callers.iter().enumerate().filter(|(other, _)| *other != caller);
        others.map(|(_, (_, pending))| *pending).chain(self.orphan).any(|pending| pending.row.is_some())
    }

    fn commit(&mut self, pending: Pending) {
        if let Some(row) = pending.row {
            self.committed[0] = Some(row);
        }
        self.effects += u8::from(pending.effect);
    }
}

impl Transactions {
    fn table(&self, caller: usize) -> usize {
        usize::from(self.callers[caller] == Kind::UnderLease && !self.safeguards.one_table)
    }

    /// What the call finds, and the right to run where there is nothing.
    fn enter(&self, now: &mut Moment, caller: usize) {
        let table = self.table(caller);
        let told = match now.committed[table] {
            None if self.callers[caller] == Kind::UnderLease => {
                now.committed[table] = Some(Row::AtWork);
                now.callers[caller].0 = Phase::Granted;
                return;
            }
            None => {
                now.callers[caller] = (Phase::Granted, Pending { row: Some(Row::Silent), effect: false });
                return;
            }
            Some(Row::Completed) => Told::Replayed,
            Some(Row::Failed | Row::AtWork | Row::Silent) => Told::Error,
        };
        now.callers[caller] = (Phase::Done(told), Pending::default());
    }

    fn act(&self, now: &mut Moment, caller: usize) {
        now.callers[caller].0 = Phase::Acted;
        match self.callers[caller] {
            Kind::UnderLease => now.effects += 1,
            Kind::InTransaction => now.callers[caller].1.effect = true,
        }
    }

    fn succeed(&self, now: &mut Moment, caller: usize) {
        let (phase, pending) = &mut now.callers[caller];
        if self.callers[caller] == Kind::UnderLease {
            *phase = Phase::Done(Told::Executed);
            let table = self.table(caller);
            now.committed[table] = Some(Row::Completed);
        } else if *phase == Phase::Elsewhere && self.safeguards.notices_ending {
            // What it wrote there is undone.
            *pending = Pending::default();
            *phase = Phase::Ended(Told::Error);
        } else {
            *phase = Phase::Ended(Told::Executed);
            if self.safeguards.one_commit {
                pending.row = pending.row.map(|_| Row::Completed);
            } else {
                pending.row = None;
                now.committed[0] = Some(Row::Completed);
            }
        }
    }

    fn fail(&self, now: &mut Moment, caller: usize) {
        let (phase, pending) = &mut now.callers[caller];
        *phase = Phase::Ended(Told::Error);
        pending.effect &= !self.safeguards.undoes_errors;
        pending.row = self.replays_errors.then_some(Row::Failed);
    }

    /// Ends the transaction of a caller, whose call is not heard of again.
    fn vanish(now: &mut Moment, caller: usize, phase: Phase) {
        now.callers[caller] = (phase, Pending::default());
    }
}

impl Model for Transactions {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment {
            committed: [None; 2],
            effects: 0,
            callers: vec![(Phase::Idle, Pending::default()); self.callers.len()],
            orphan: None,
            left: self.mishaps,
        }]
    }

    fn actions(&self, now: &Moment, steps: &mut Vec<Step>) {
        for (caller, (phase, pending)) in now.callers.iter().enumerate() {
            let in_transaction = self.callers[caller] == Kind::InTransaction;
            match phase {
                Phase::Idle if self.safeguards.waits_for_open && now.is_taken(caller) => {}
                Phase::Idle => steps.push(Step::Enter(caller)),
                Phase::Granted => steps.push(Step::Act(caller)),
                Phase::Acted => {
                    steps.push(Step::Succeed(caller));
                    if in_transaction && now.left.errors > 0 {
                        steps.push(Step::Fail(caller));
                    }
                    if in_transaction && now.left.endings > 0 {
                        steps.push(Step::EndTransaction(caller));
                    }
                    if in_transaction && now.left.drops > 0 {
                        steps.push(Step::Drop(caller));
                    }
                }
                Phase::Elsewhere => steps.push(Step::Succeed(caller)),
                Phase::Ended(_) => {
                    steps.push(Step::Commit(caller));
                    if now.left.rollbacks > 0 {
                        steps.push(Step::RollBack(caller));
                    }
                    if now.left.lost_commits > 0 && now.orphan.is_none() && pending.row.is_some() {
                        steps.push(Step::LoseCommit(caller));
                    }
                }
                Phase::Done(_) | Phase::Dead => continue,
            }
            if now.left.crashes > 0 && *phase != Phase::Idle {
                steps.push(Step::Crash(caller));
            }
        }
        if now.orphan.is_some() {
            steps.extend([Step::Decide(true), Step::Decide(false)]);
        }
        if now.committed.contains(&Some(Row::AtWork)) {
            let is_at_work = |(kind, (phase, _)): (&Kind, &(Phase, _))| {
                *kind == Kind::UnderLease && matches!(phase, Phase::Granted | Phase::Acted)
            };
            if !self.callers.iter().zip(&now.callers).any(is_at_work) {
                steps.push(Step::EndLease);
            }
        }
    }

    fn next_state(&self, before: &Moment, step: Step) -> Option<Moment> {
        let mut now = before.clone();
        match step {
            Step::Enter(caller) => self.enter(&mut now, caller),
            Step::Act(caller) => self.act(&mut now, caller),
            Step::Succeed(caller) => self.succeed(&mut now, caller),
            Step::Fail(caller) => {
                now.left.errors -= 1;
                self.fail(&mut now, caller);
            }
            Step::EndTransaction(caller) => {
                now.left.endings -= 1;
                now.callers[caller] = (Phase::Elsewhere, Pending { row: None, effect: true });
            }
            Step::Drop(caller) => {
                now.left.drops -= 1;
                let (phase, pending) = &mut now.callers[caller];
                *phase = Phase::Ended(Told::Nothing);
                pending.row = pending.row.filter(|_| self.safeguards.keeps_dropped);
            }
            Step::Commit(caller) => {
                let (phase, pending) = now.callers[caller];
                let Phase::Ended(told) = phase else { return None };
                now.commit(pending);
                Self::vanish(&mut now, caller, Phase::Done(told));
            }
            Step::LoseCommit(caller) => {
                now.left.lost_commits -= 1;
                now.orphan = Some(now.callers[caller].1);
                Self::vanish(&mut now, caller, Phase::Idle);
            }
            Step::RollBack(caller) => {
                now.left.rollbacks -= 1;
                Self::vanish(&mut now, caller, Phase::Done(Told::Nothing));
            }
            Step::Crash(caller) => {
                now.left.crashes -= 1;
                Self::vanish(&mut now, caller, Phase::Dead);
            }
            Step::Decide(arrives) => {
                let orphan = now.orphan.take()?;
                if arrives {
                    now.commit(orphan);
                }
            }
            Step::EndLease => {
                for row in now.committed.iter_mut().flatten().filter(|row| **row == Row::AtWork) {
                    *row = Row::Silent;
                }
            }
        }
        Some(now)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the effect is there once at most", |_, now: &Moment| now.effects <= 1),
            Property::always("no effect without a record", |_, now: &Moment| {
                now.effects == 0 || now.committed.iter().any(Option::is_some)
            }),
            Property::always("no result without its effect", |_, now: &Moment| {
                now.effects > 0 || !now.committed.contains(&Some(Row::Completed))
            }),
            Property::always("what a caller is told is so", |_, now: &Moment| {
                let is_value = |phase| matches!(phase, Phase::Done(Told::Executed | Told::Replayed));
                now.committed.contains(&Some(Row::Completed))
                    || !now.callers.iter().any(|(phase, _)| is_value(*phase))
            }),
            Property::always("nobody waits for ever", |machine: &Self, now: &Moment| {
                let mut steps = Vec::new();
                machine.actions(now, &mut steps);
                let is_over = |phase| matches!(phase, Phase::Done(_) | Phase::Dead);
                !steps.is_empty() || now.callers.iter().all(|(phase, _)| is_over(*phase))
            }),
            Property::sometimes("a duplicate replays", |_, now: &Moment| {
                now.callers.iter().any(|(phase, _)| *phase == Phase::Done(Told::Replayed))
            }),
        ]
    }
}
