//! What a store without a server's clock tells the time by.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A clock: time since the Unix epoch.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Duration;
}

/// The time of day at the clock's making, carried on by the machine's monotonic clock: setting the time of day moves no
/// lease. It follows tokio's paused clock in tests.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
    epoch: Duration,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.epoch + self.started.elapsed()
    }
}
