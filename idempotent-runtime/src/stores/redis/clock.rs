//! What time it is on the server, without asking it every time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is good for.
const FRESH: Duration = Duration::from_millis(10);

/// The server's clock, carried on from its last answer by this machine's monotonic clock, for ten milliseconds.
///
/// Nothing is decided by it: where it says that a lease is over, the server is asked to judge. It is never behind the
/// server's, because the answer counts as given when the question was sent.
#[derive(Debug, Default)]
pub(super) struct ServerClock(Mutex<Option<(Instant, u64)>>);

impl ServerClock {
    /// The time at `now`, in microseconds, if the last answer is fresh enough.
    pub(super) fn at(&self, now: Instant) -> Option<u64> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, time) = last?;
        let age = now.saturating_duration_since(asked);
        (age <= FRESH).then(|| time.saturating_add(u64::try_from(age.as_micros()).unwrap_or(u64::MAX)))
    }

    /// To a question sent at `asked` the server answered with `time`.
    pub(super) fn answered(&self, asked: Instant, time: u64) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|(before, _)| before < asked) {
            *last = Some((asked, time));
        }
    }
}
