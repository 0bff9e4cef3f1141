//! The time of day, as every process of the host sees it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::stores::Clock;

/// The host's time of day, asked for every time.
///
/// Not [`SystemClock`](crate::stores::SystemClock), which carries on from the time of day at its making: after the host's
/// clock was set, a process that started before and one that started after would not agree on when a lease ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}
