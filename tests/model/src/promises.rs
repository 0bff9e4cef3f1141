//! What is promised, and what must be remembered of a history to see a promise broken.

use std::fmt;

use crate::record::CallId;

/// A promise of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Until a record expires, or an operator says otherwise, one value at most is stored and replayed.
    OneResult,
    /// Nothing but the attempt that was granted last changes a running record, and nothing changes a settled one.
    NothingStaleWrites,
    /// A caller that is told `Executed` finds its own value stored; one that is told of a lost lease does not.
    OutcomeIsTrue,
    /// A body works under the arguments for which its record was made.
    OneFingerprint,
    /// With `on_crash = "refuse"` and no steps, no body starts after one that was polled and gave no answer.
    NoBodyAfterSilence,
    /// What was begun, and may have happened, is not done again under a policy that refuses it.
    NoEffectAgain,
    /// A step whose result is stored is not run by a later attempt.
    NoStepAgain,
    /// No call is kept out by its own reservation.
    NotBlockedByItself,
    /// Every call ends, and when nobody is at work the next call is answered for good: under `on_crash = "retry"` its
    /// body starts, or it has a result.
    NobodyWaitsForEver,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OneResult,
        Self::NothingStaleWrites,
        Self::OutcomeIsTrue,
        Self::OneFingerprint,
        Self::NoBodyAfterSilence,
        Self::NoEffectAgain,
        Self::NoStepAgain,
        Self::NotBlockedByItself,
        Self::NobodyWaitsForEver,
    ];

    fn bit(self) -> u16 {
        match self {
            Self::OneResult => 1,
            Self::NothingStaleWrites => 1 << 1,
            Self::OutcomeIsTrue => 1 << 2,
            Self::OneFingerprint => 1 << 3,
            Self::NoBodyAfterSilence => 1 << 4,
            Self::NoEffectAgain => 1 << 5,
            Self::NoStepAgain => 1 << 6,
            Self::NotBlockedByItself => 1 << 7,
            Self::NobodyWaitsForEver => 1 << 8,
        }
    }
}

/// Some promises.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Broken(u16);

impl Broken {
    pub(crate) fn note(&mut self, promise: Promise) {
        self.0 |= promise.bit();
    }

    /// Whether it is among them.
    pub fn contains(self, promise: Promise) -> bool {
        self.0 & promise.bit() != 0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Promise::ALL.iter().filter(|promise| self.contains(**promise))).finish()
    }
}

/// A set of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Calls(u16);

impl Calls {
    pub(crate) fn insert(&mut self, call: CallId) {
        self.0 |= 1 << call;
    }

    pub(crate) fn remove(&mut self, call: CallId) {
        self.0 &= !(1 << call);
    }

    pub(crate) fn contains(self, call: CallId) -> bool {
        self.0 & (1 << call) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What is remembered beside the state of the protocol, which decides nothing by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct History {
    /// The value that was stored for as long as the record is to be remembered.
    pub stored: Option<CallId>,
    /// Calls whose body was polled, and has not said that nothing happened.
    pub polled: Calls,
    /// Calls that acted without that being settled.
    pub acted: Calls,
    /// Calls of which an operator, or the end of the ttl, has said that they do not count any more.
    pub excused: Calls,
    /// Whether the step's result is stored.
    pub step_done: bool,
    /// Promises that are broken.
    pub broken: Broken,
}
