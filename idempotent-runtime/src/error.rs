//! The error of a call that gave no result of its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::key::OperationName;
use crate::store::{StateName, StoreError};

/// Why an idempotent call did not give a result.
///
/// None of these says that the body failed: a body's own error is given to its caller as it is. Every variant but
/// [`Store`](Self::Store) tells what is known about the key, and for all of them but
/// [`LeaseLost`](Self::LeaseLost) **this call has not run the body**.
///
/// No argument value, key or stored result is in an error, neither in `Display` nor in `Debug`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no [`Idempotency`](crate::Idempotency) to work with, or it does not suit the call.
    NotConfigured {
        /// The operation that was called; empty outside a call.
        operation: OperationName,
        /// What is missing and how to give it.
        reason: &'static str,
    },
    /// A part of the key is null or empty, so that unrelated calls would share it.
    MissingKey {
        /// The operation that was called.
        operation: OperationName,
        /// The selector whose value was null or empty.
        part: &'static str,
    },
    /// The first call with this key is still at work.
    InProgress {
        /// The operation that was called.
        operation: OperationName,
        /// When to ask again: what is left of the first one's lease, which it may renew.
        retry_after: Duration,
    },
    /// The call was made inside its own body, for the same key: waiting would never end.
    Reentrant {
        /// The operation that was called.
        operation: OperationName,
    },
    /// The key was used before with other arguments.
    KeyReused {
        /// The operation that was called.
        operation: OperationName,
        /// Where the record of the other arguments stands.
        state: StateName,
    },
    /// An attempt gave no answer, or one that leaves open what happened, and the policies forbid another.
    ///
    /// It stays so until somebody finds out what happened and [resolves](crate::store::Store::resolve) the key.
    OutcomeUnknown {
        /// The operation that was called.
        operation: OperationName,
    },
    /// The body ran to its end once, but its result could not be kept.
    NotRetained {
        /// The operation that was called.
        operation: OperationName,
    },
    /// There is a stored result, and it does not fit what this version of the program expects. It is left as it is.
    Unreadable {
        /// The operation that was called.
        operation: OperationName,
        /// What does not fit.
        reason: Arc<str>,
    },
    /// Two annotated functions claim one operation name on one handle; or one method does for two types, where nothing in
    /// its key says for which.
    OperationConflict {
        /// The name.
        operation: OperationName,
    },
    /// The store did not do its part before the body. Asking again with the same key is safe.
    Store {
        /// The operation that was called.
        operation: OperationName,
        /// The store's own error.
        source: Arc<StoreError>,
    },
    /// An argument could not be serialized for the fingerprint or the key.
    Argument {
        /// The operation that was called.
        operation: OperationName,
        /// The argument or selector.
        argument: Arc<str>,
        /// The serializer's reason.
        reason: Arc<str>,
    },
    /// [`attempt`](crate::attempt) or [`step`](crate::step) was called outside a body.
    NoAttempt,
    /// The attempt does not own its key any more, so nothing may be written in its name. Given inside the body, and to the
    /// caller of a body that [`OnLost::Cancel`](crate::OnLost::Cancel) has dropped, which may have begun to act.
    LeaseLost {
        /// The operation that was called.
        operation: OperationName,
    },
    /// The transaction that the call was to be a part of is not open, or not the one in which it began.
    ///
    /// When the body itself has ended the transaction, it has run, and what it wrote may be there without a record of it.
    Transaction {
        /// The operation that was called.
        operation: OperationName,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A step was used in a way that its record cannot hold.
    Step {
        /// The operation that was called.
        operation: OperationName,
        /// The step.
        step: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
}

impl Error {
    /// A short name for programs: stable, lower case, words joined by hyphens.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotConfigured { .. } => "not-configured",
            Self::MissingKey { .. } => "missing-key",
            Self::InProgress { .. } => "in-progress",
            Self::Reentrant { .. } => "reentrant",
            Self::KeyReused { .. } => "key-reused",
            Self::OutcomeUnknown { .. } => "outcome-unknown",
            Self::NotRetained { .. } => "result-not-retained",
            Self::Unreadable { .. } => "unreadable",
            Self::OperationConflict { .. } => "operation-conflict",
            Self::Store { .. } => "store-unavailable",
            Self::Argument { .. } => "argument",
            Self::NoAttempt => "no-attempt",
            Self::LeaseLost { .. } => "lease-lost",
            Self::Transaction { .. } => "transaction",
            Self::Step { .. } => "step",
        }
    }

    /// Whether the same call may give another answer later without anybody's doing.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InProgress { .. } => true,
            Self::Store { source, .. } => source.is_transient(),
            _ => false,
        }
    }

    /// How long to wait before the next try, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// The HTTP status that says the same.
    ///
    /// 400, 409 and 422 are what the expired Internet-Draft "The Idempotency-Key HTTP Header Field" names for a missing
    /// key, a call in progress and a reused key.
    pub fn http_status(&self) -> u16 {
        match self {
            Self::MissingKey { .. } => 400,
            Self::InProgress { .. } | Self::OutcomeUnknown { .. } | Self::NotRetained { .. } => 409,
            Self::KeyReused { .. } => 422,
            Self::Store { .. } => 503,
            _ => 500,
        }
    }

    /// The operation that was called, where there was one.
    pub fn operation(&self) -> Option<&str> {
        match self {
            Self::NotConfigured { operation, .. }
            | Self::MissingKey { operation, .. }
            | Self::InProgress { operation, .. }
            | Self::Reentrant { operation }
            | Self::KeyReused { operation, .. }
            | Self::OutcomeUnknown { operation }
            | Self::NotRetained { operation }
            | Self::Unreadable { operation, .. }
            | Self::OperationConflict { operation }
            | Self::Store { operation, .. }
            | Self::Argument { operation, .. }
            | Self::LeaseLost { operation }
            | Self::Transaction { operation, .. }
            | Self::Step { operation, .. } => {
                Some(operation).map(|name| &**name).filter(|name| !name.is_empty())
            }
            Self::NoAttempt => None,
        }
    }
}

/// Rounded up, so that nobody asks too early.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation() {
            write!(f, "{operation}: ")?;
        }
        match self {
            Self::NotConfigured { reason, .. } | Self::Transaction { reason, .. } => f.write_str(reason),
            Self::MissingKey { part, .. } => write!(f, "the key part `{part}` is null or empty"),
            Self::InProgress { retry_after, .. } => write!(
                f,
                "the first call with this key is still at work, or has ended without an answer; ask again in {} s",
                whole_seconds(*retry_after)
            ),
            Self::Reentrant { .. } => f.write_str("called inside its own body for the same key"),
            Self::KeyReused { state, .. } => {
                write!(f, "this key was used with other arguments (its record is {state})")
            }
            Self::OutcomeUnknown { .. } => f.write_str(
                "an earlier attempt gave no answer, or an error that leaves open what it did; find out what happened, and \
                 resolve the key with the program `idempotent`, `Operation::resolve_done` or `Idempotency::resolve_not_done`",
            ),
            Self::NotRetained { .. } => f.write_str("it ran before, and its result could not be kept"),
            Self::Unreadable { reason, .. } => write!(f, "the stored result cannot be read: {reason}"),
            Self::OperationConflict { .. } => f.write_str(
                "two annotated functions, or one method of two types, have this operation name; give one of them \
                 another `name`, or put what tells the types apart into `key`",
            ),
            // Without the cause, which is the source: databases quote what they were given, and that is a key.
            Self::Store { source, .. } => f.write_str(&source.summary()),
            Self::Argument { argument, reason, .. } => {
                write!(f, "`{argument}` cannot be serialized: {reason}")
            }
            Self::NoAttempt => f.write_str(
                "`attempt()` or `step()` was called outside the body of an idempotent call; a task that the body spawns is \
                 outside, and needs the `Attempt` given to it",
            ),
            Self::LeaseLost { .. } => f.write_str("this attempt does not own its key any more"),
            Self::Step { step, reason, .. } => write!(f, "step `{step}`: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store { source, .. } => Some(&**source),
            _ => None,
        }
    }
}
