//! What became of a request.

use std::fmt;

use idempotent_runtime::{Error, Outcome};

use crate::payment::{ChargeError, Receipt};

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// The kinds of answers, as a client has to tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The gateway was asked, and said yes or no.
    Executed,
    /// The same answer as to an earlier request.
    Replayed,
    /// Ask again later.
    InProgress,
    /// A bug of the client: it must send another order id.
    KeyReused,
    /// Somebody has to find out what happened.
    Refused,
    /// Something went wrong in this very call.
    Failed,
    /// A bug of the client: there is no order id.
    MissingKey,
}

impl Answer {
    /// Only the outcome tells a replayed answer from a new one: to the caller they are the same, as they should be.
    pub(crate) fn new(result: Result<Receipt, ChargeError>, outcome: Option<Outcome>) -> Self {
        let answered = if outcome == Some(Outcome::Replayed) { Kind::Replayed } else { Kind::Executed };
        let (kind, text) = match result {
            Ok(receipt) => (answered, receipt.to_string()),
            Err(error) => {
                let kind = match &error {
                    ChargeError::Declined { .. } => answered,
                    ChargeError::GatewayDown | ChargeError::NoAnswer { .. } => Kind::Failed,
                    ChargeError::Idempotency(error) => Kind::of(error),
                };
                (kind, error.to_string())
            }
        };
        match outcome {
            Some(Outcome::Unrecorded(reason)) => {
                Self { kind, text: format!("{text}, not recorded: {reason:?}") }
            }
            _ => Self { kind, text },
        }
    }
}

impl Kind {
    fn of(error: &Error) -> Self {
        match error {
            Error::InProgress { .. } => Self::InProgress,
            Error::KeyReused { .. } => Self::KeyReused,
            Error::OutcomeUnknown { .. } | Error::NotRetained { .. } => Self::Refused,
            Error::MissingKey { .. } => Self::MissingKey,
            _ => Self::Failed,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::InProgress => "in progress",
            Self::KeyReused => "key reused",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::MissingKey => "missing key",
        })
    }
}

/// How many answers there were of each kind.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    executed: usize,
    replayed: usize,
    in_progress: usize,
    key_reused: usize,
    refused: usize,
    failed: usize,
    missing_key: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, kind: Kind) {
        *match kind {
            Kind::Executed => &mut self.executed,
            Kind::Replayed => &mut self.replayed,
            Kind::InProgress => &mut self.in_progress,
            Kind::KeyReused => &mut self.key_reused,
            Kind::Refused => &mut self.refused,
            Kind::Failed => &mut self.failed,
            Kind::MissingKey => &mut self.missing_key,
        } += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executed, replayed, in_progress, key_reused, refused, failed, missing_key } = self;
        write!(f, "executed {executed}, replayed {replayed}, in progress {in_progress}, ")?;
        write!(f, "key reused {key_reused}, refused {refused}, failed {failed}, missing key {missing_key}")
    }
}
