//! What a store keeps, and whose it is.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[cfg(doc)]
use super::Store;
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;

/// What makes one attempt the owner of a record: 128 random bits, new for every attempt.
///
/// A counter would not do: it starts again after a purge, and a stale owner would pass for the new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken([u8; 16]);

impl OwnerToken {
    /// The token of a record that no attempt owns.
    pub const NOBODY: Self = Self([0; 16]);

    /// A token that nobody has.
    pub fn random() -> Self {
        Self(crate::chance::token())
    }

    /// The token with these bytes, as a store kept it.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes that a store keeps.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a store keeps under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it is kept.
    pub key: RecordKey,
    /// Who may change it.
    pub owner: OwnerToken,
    /// How many attempts there have been in this generation.
    pub attempt: u32,
    /// The fencing token of the latest attempt.
    pub fence: u64,
    /// The arguments, as a digest.
    pub fingerprint: Fingerprint,
    /// Running, or settled with what.
    pub state: State,
    /// What the attempts have written on their way.
    pub steps: Vec<Step>,
    /// When the first attempt of this generation was granted, by the store's clock.
    pub created_at: SystemTime,
    /// How long until the record expires.
    pub expires_in: Duration,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// An attempt is at work, or was.
    Running {
        /// Until the attempt counts as dead; zero when it does.
        lease_left: Duration,
        /// Whether the attempt has said that an effect may have happened.
        effects_begun: bool,
    },
    /// The matter is closed until the record expires.
    Settled(Settled),
}

impl State {
    /// Running, with its lease over: nobody will settle it but a late owner, a take-over or [`Store::resolve`].
    pub fn is_abandoned(&self) -> bool {
        matches!(self, Self::Running { lease_left, .. } if lease_left.is_zero())
    }

    /// The name of the state in lists and events.
    pub fn name(&self) -> StateName {
        match self {
            Self::Running { .. } => StateName::Running,
            Self::Settled(settled) => settled.name(),
        }
    }
}

/// How a record was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The body returned `Ok`; this is the value.
    Completed(Stored),
    /// The body returned an `Err` that is to be replayed.
    Failed(Stored),
    /// The body ran to its end, but its result could not be kept.
    NotRetained,
    /// Nobody knows what happened, and no call may find out by running.
    Unknown,
}

impl Settled {
    /// The name of the state in lists and events.
    pub fn name(&self) -> StateName {
        match self {
            Self::Completed(_) => StateName::Completed,
            Self::Failed(_) => StateName::Failed,
            Self::NotRetained => StateName::NotRetained,
            Self::Unknown => StateName::Unknown,
        }
    }

    /// What is replayed, if there is something.
    pub fn stored(&self) -> Option<&Stored> {
        match self {
            Self::Completed(stored) | Self::Failed(stored) => Some(stored),
            Self::NotRetained | Self::Unknown => None,
        }
    }
}

/// The names of a record's states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateName {
    /// An attempt is at work, or was.
    Running,
    /// Settled with a value.
    Completed,
    /// Settled with an error.
    Failed,
    /// Ran, result not kept.
    NotRetained,
    /// Nobody knows.
    Unknown,
}

impl StateName {
    /// As it is written in stores, events and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NotRetained => "not_retained",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A result as a store keeps it: opaque bytes, and the version of the type that they were made from.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// The attribute's `version` option.
    pub version: u32,
    /// What the codec made of the serialized result.
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for Stored {
    /// Without the bytes, which may be somebody's secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("version", &self.version).field("len", &self.bytes.len()).finish()
    }
}

/// Part of a body that is run once and whose result is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name that the body gave it; unique within a record.
    pub name: Arc<str>,
    /// Begun, or done with what.
    pub state: StepState,
}

/// How far a step is.
#[derive(Clone, PartialEq, Eq)]
pub enum StepState {
    /// It may have had its effect.
    Begun,
    /// It had its effect, and this is its result.
    Done(Arc<[u8]>),
}

impl fmt::Debug for StepState {
    /// Without the bytes, which may be somebody's secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun => f.write_str("Begun"),
            Self::Done(bytes) => write!(f, "Done({} bytes)", bytes.len()),
        }
    }
}
