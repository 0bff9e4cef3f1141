//! What an operation does when something goes wrong.

use crate::store::TakeOver;

/// What happens to a key whose attempt gave no answer: the process died, the future was dropped, or the body panicked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnCrash {
    /// The key stays used, and duplicates get [`OutcomeUnknown`](crate::Error::OutcomeUnknown) until somebody resolves
    /// it. A crash between two [steps](crate::Attempt::step) continues, because nothing is in doubt there.
    #[default]
    Refuse,
    /// The next call runs the body again once the lease is over: the effects may happen more than once.
    Retry,
    /// As `Retry` until the body calls [`begin_effects`](crate::Attempt::begin_effects), as `Refuse` after it.
    RetryBeforeEffects,
}

impl From<OnCrash> for TakeOver {
    fn from(policy: OnCrash) -> Self {
        match policy {
            OnCrash::Refuse => Self::BetweenSteps,
            OnCrash::RetryBeforeEffects => Self::BeforeEffects,
            OnCrash::Retry => Self::Always,
        }
    }
}

/// What happens to a body whose [lease is lost](crate::Attempt::is_lost) while it runs: another attempt has its key, or the
/// store has not confirmed it for a whole lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLost {
    /// The body goes on, and its caller gets what it gives. The body can ask, or wait for
    /// [`Attempt::lost`](crate::Attempt::lost), and stop by itself where stopping is safe.
    #[default]
    GoOn,
    /// The body's future is dropped where it waits, and its caller gets [`LeaseLost`](crate::Error::LeaseLost). The record
    /// is left as it is.
    ///
    /// What the body has done stays done, and what it would have done next, another attempt may do. It can only be dropped
    /// where it waits: one that blocks its thread goes on. In a call in a transaction of the caller's there is no lease
    /// to lose, and a handler behind the HTTP layer goes on.
    Cancel,
}

/// What happens when a key part is null or empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The call gets [`MissingKey`](crate::Error::MissingKey), and nothing runs.
    #[default]
    Error,
    /// The body runs without any protection, every time.
    Run,
}

/// What a returned `Err` does to its key.
///
/// The answer of a function given as `on_error` whose error type can be stored (it is `Serialize` and
/// `DeserializeOwned`). One whose error type cannot returns [`Unstored`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// The work did not happen: the key is released, and the next call runs. After
    /// [`begin_effects`](crate::Attempt::begin_effects) this acts as `Refuse`; after a finished step it keeps the steps
    /// and the next call continues after them.
    Retry,
    /// The error is the result: it is stored and given to every duplicate.
    Replay,
    /// Nobody knows whether the work happened: the key stays used, and duplicates get
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown).
    Refuse,
}

/// What a returned `Err` does to its key, where the error cannot be stored. See [`OnError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstored {
    /// As [`OnError::Retry`].
    Retry,
    /// As [`OnError::Refuse`].
    Refuse,
}
