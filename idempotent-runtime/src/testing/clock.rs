//! A clock that stands still until a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::stores::Clock;

/// A clock that stands still until it is moved. A clone shows, and moves, the same time.
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::stores::Clock;
/// use idempotent_runtime::testing::ManualClock;
///
/// let clock = ManualClock::default();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(clock.now() - before, Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    // Nanoseconds since the epoch: enough until the year 2554, and moved without a lock.
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows `now`, counted from the Unix epoch.
    pub fn at(now: Duration) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(nanos(now))) }
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        self.change(|now| now.saturating_add(nanos(by)));
    }

    /// Moves the time backward, as a corrected or restored machine does.
    pub fn set_back(&self, by: Duration) {
        self.change(|now| now.saturating_sub(nanos(by)));
    }

    fn change(&self, to: impl Fn(u64) -> u64) {
        let mut now = self.nanos.load(Ordering::Acquire);
        while let Err(seen) =
            self.nanos.compare_exchange_weak(now, to(now), Ordering::AcqRel, Ordering::Acquire)
        {
            now = seen;
        }
    }
}

impl Default for ManualClock {
    /// A clock that shows the same moment in every test: the first second of 2026.
    fn default() -> Self {
        Self::at(Duration::from_secs(1_767_225_600))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Acquire))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
