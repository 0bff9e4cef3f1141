//! What callers and bodies saw, kept outside the store, and what of it must not be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use idempotent_runtime::{OnCrash, OnError};
use tokio::time::Instant;

/// Numbers that follow from a seed.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// What the body does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Acts at once.
    Plain,
    /// Says that effects begin, then acts.
    Effects,
    /// Acts in a step.
    Step,
}

/// What a seed is about.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub body: Body,
    pub on_crash: OnCrash,
    pub on_error: OnError,
    pub waits: bool,
    /// Whether results expire while calls still come.
    pub short_ttl: bool,
    pub nested: bool,
}

/// One seed's world: its dice, its history, and what was seen of each key.
#[derive(Debug)]
pub struct World {
    pub plan: Plan,
    begun: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    dice: Dice,
    healed: bool,
    history: Vec<String>,
    violations: Vec<String>,
    next_call: u64,
    keys: BTreeMap<String, Seen>,
}

/// What was seen of one key.
#[derive(Debug, Default)]
struct Seen {
    /// Calls whose body was polled, and has not said that nothing happened.
    polled: BTreeSet<u64>,
    /// Calls that acted where that must not happen again.
    acted: BTreeSet<u64>,
    /// The attempt that has stored the step's result.
    step_done: Option<u32>,
    /// Calls up to this one do not count any more: an operator has looked.
    excused: u64,
    /// The result that duplicates are given.
    given: Option<String>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        for _ in 0..4 {
            dice.next();
        }
        let plan = Plan {
            body: [Body::Plain, Body::Effects, Body::Step][pick(&mut dice, 3)],
            on_crash: [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects][pick(&mut dice, 3)],
            on_error: [OnError::Retry, OnError::Replay, OnError::Refuse][pick(&mut dice, 3)],
            waits: pick(&mut dice, 3) == 0,
            short_ttl: pick(&mut dice, 4) == 0,
            nested: pick(&mut dice, 4) == 0,
        };
        let inner = Inner {
            dice,
            healed: false,
            history: vec![format!("{plan:?}")],
            violations: Vec::new(),
            next_call: 0,
            keys: BTreeMap::new(),
        };
        Self { plan, begun: Instant::now(), inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of so many.
    pub fn roll(&self, sides: u64) -> u64 {
        self.inner().dice.next() % sides
    }

    /// Whether one in so many comes up, and things may still go wrong.
    pub fn mishap(&self, one_in: u64) -> bool {
        let mut inner = self.inner();
        !inner.healed && inner.dice.next().is_multiple_of(one_in)
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.inner().healed = true;
        self.note(|| "== healed".to_owned());
    }

    pub fn note(&self, what: impl FnOnce() -> String) {
        let at = self.begun.elapsed().as_millis();
        let what = what();
        self.inner().history.push(format!("{at:>7} ms  {what}"));
    }

    pub fn violation(&self, what: String) {
        self.note(|| format!("!! {what}"));
        self.inner().violations.push(what);
    }

    pub fn report(&self) -> (Vec<String>, Vec<String>) {
        let mut inner = self.inner();
        (std::mem::take(&mut inner.violations), std::mem::take(&mut inner.history))
    }

    pub fn new_call(&self) -> u64 {
        let mut inner = self.inner();
        inner.next_call += 1;
        inner.next_call
    }

    /// A body is polled for the first time.
    pub fn body_starts(&self, key: &str, call: u64) {
        self.note(|| format!("{key}: body of call {call} starts"));
        let judged = self.plan.on_crash == OnCrash::Refuse && self.plan.body != Body::Step;
        let silent = {
            let mut inner = self.inner();
            let seen = inner.keys.entry(key.to_owned()).or_default();
            let silent = seen.polled.iter().copied().next().filter(|_| judged && call > seen.excused);
            if call > seen.excused {
                seen.polled.insert(call);
            }
            silent
        };
        if let Some(silent) = silent {
            self.violation(format!("{key}: body of call {call} starts although that of {silent} has run"));
        }
    }

    /// The body of this attempt has stored its step.
    pub fn step_is_done(&self, key: &str, call: u64, attempt: u32) {
        let mut inner = self.inner();
        let seen = inner.keys.entry(key.to_owned()).or_default();
        if call > seen.excused {
            seen.step_done = Some(attempt);
        }
    }

    /// A step runs.
    pub fn step_runs(&self, key: &str, call: u64, attempt: u32) {
        let done = {
            let mut inner = self.inner();
            let seen = inner.keys.entry(key.to_owned()).or_default();
            seen.step_done.filter(|done| *done < attempt && call > seen.excused && !self.plan.short_ttl)
        };
        if let Some(done) = done {
            self.violation(format!("{key}: call {call} runs the step that attempt {done} has done"));
        }
        self.acts(key, call);
    }

    /// A body acts.
    pub fn acts(&self, key: &str, call: u64) {
        self.note(|| format!("{key}: call {call} acts"));
        let judged = self.plan.on_crash != OnCrash::Retry && self.plan.body != Body::Plain;
        let before = {
            let mut inner = self.inner();
            let seen = inner.keys.entry(key.to_owned()).or_default();
            let counts = judged && call > seen.excused;
            let before = seen.acted.iter().copied().next().filter(|_| counts);
            if counts {
                seen.acted.insert(call);
            }
            before
        };
        if let Some(before) = before {
            self.violation(format!("{key}: call {call} acts although call {before} has"));
        }
    }

    /// A body gives its answer. `says_nothing_happened`: the policy takes it for that.
    pub fn answers(&self, key: &str, call: u64, answer: &str, says_nothing_happened: bool, stored: bool) {
        self.note(|| format!("{key}: body of call {call} answers {answer}"));
        let mut inner = self.inner();
        let forgets = self.plan.short_ttl && stored;
        let seen = inner.keys.entry(key.to_owned()).or_default();
        if says_nothing_happened || forgets {
            seen.polled.remove(&call);
        }
        if forgets {
            seen.acted.clear();
        }
    }

    /// A caller is given what the record holds.
    pub fn given(&self, key: &str, call: u64, result: &str) {
        if self.plan.short_ttl {
            return;
        }
        let other = {
            let mut inner = self.inner();
            let seen = inner.keys.entry(key.to_owned()).or_default();
            let other = seen.given.clone().filter(|given| given != result);
            seen.given = Some(result.to_owned());
            other
        };
        if let Some(other) = other {
            self.violation(format!("{key}: call {call} was given {result}, and another one {other}"));
        }
    }

    /// An operator has settled what happened until now.
    pub fn repaired(&self, key: &str, given: Option<String>) {
        let mut inner = self.inner();
        let excused = inner.next_call;
        inner.keys.insert(key.to_owned(), Seen { excused, given, ..Seen::default() });
    }
}

fn pick(dice: &mut Dice, sides: u64) -> usize {
    usize::try_from(dice.next() % sides).unwrap()
}
