//! Giving a stored result to a duplicate.

use std::borrow::Cow;
use std::sync::Arc;

use crate::call::Call;
use crate::error::Error;
use crate::events;
use crate::idempotency::ReplayInfo;
use crate::outcome::Outcome;
use crate::store::Stored;

/// A stored result on its way to a duplicate.
#[derive(Debug)]
pub(crate) struct Replay {
    call: Arc<Call>,
    attempt: u32,
    stored: Stored,
    /// Whether it is a stored error.
    pub(crate) failed: bool,
}

impl Replay {
    pub(crate) fn new(call: &Arc<Call>, attempt: u32, stored: Stored, failed: bool) -> Self {
        Self { call: Arc::clone(call), attempt, stored, failed }
    }

    /// The serialized result, if it is of the version that this program expects.
    pub(crate) fn plain(&self) -> Result<Cow<'_, [u8]>, Error> {
        let Stored { version, bytes } = &self.stored;
        let expected = self.call.version;
        if *version != expected {
            return Err(self.unreadable(&format!(
                "it was stored by version {version} of the result type, and this program has version {expected}"
            )));
        }
        match &self.call.core.settings.codec {
            None => Ok(Cow::Borrowed(bytes)),
            Some(codec) => codec
                .decode(&self.call.key, bytes)
                .map(Cow::Owned)
                .map_err(|_| self.unreadable("the codec could not decode it")),
        }
    }

    /// The error for a result that does not fit. `reason` must not quote the result.
    pub(crate) fn unreadable(&self, reason: &str) -> Error {
        let operation = self.call.key.operation().clone();
        events::unreadable(&self.call, reason);
        Error::Unreadable { operation, reason: reason.into() }
    }

    /// The error for a result that the deserializer refused. Where it refused is said, but not the text of its error,
    /// which may quote the result.
    pub(crate) fn misfit(&self, error: &serde_json::Error) -> Error {
        let (line, column) = (error.line(), error.column());
        self.unreadable(&format!("it does not fit the result type (at line {line}, column {column})"))
    }

    /// Tells those who want to know that the result is about to be given.
    pub(crate) fn given(&self) {
        let call = &*self.call;
        if let Some(hook) = &call.core.settings.on_replay {
            hook(&ReplayInfo {
                operation: call.key.operation(),
                key: &call.key,
                attempt: self.attempt,
                failed: self.failed,
            });
        }
        if let Some(slot) = &call.slot {
            slot.set(Outcome::Replayed);
        }
        events::replayed(call, self.attempt);
    }
}
