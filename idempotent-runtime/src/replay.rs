//! Giving a stored result to a duplicate.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::Instant;

use crate::call::Call;
use crate::error::Error;
use crate::events;
use crate::idempotency::ReplayInfo;
use crate::outcome::Outcome;
use crate::sealing;
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

    /// When the call began that it is for.
    pub(crate) fn started(&self) -> Instant {
        self.call.started
    }

    /// The serialized result, if it is of the version that this program expects.
    pub(crate) fn plain(&self) -> Result<Cow<'_, [u8]>, Error> {
        let Stored { version, bytes } = &self.stored;
        sealing::open(&self.call, *version, bytes).map_err(|reason| self.unreadable(&reason))
    }

    /// The error for a result that does not fit. `reason` must not quote the result.
    pub(crate) fn unreadable(&self, reason: &str) -> Error {
        let operation = self.call.key.operation().clone();
        events::unreadable(&self.call, reason);
        Error::Unreadable { operation, reason: reason.into() }
    }

    /// The error for a result that the deserializer refused.
    pub(crate) fn misfit(&self, error: &serde_json::Error) -> Error {
        self.unreadable(&sealing::misfit(error))
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
