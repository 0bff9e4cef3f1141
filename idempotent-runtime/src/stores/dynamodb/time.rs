//! The clock of the machine, and points in time as items keep them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::stores::Clock;

/// A point in time, or a span, as items keep it: in microseconds, since the Unix epoch.
pub(super) type Micros = u64;

/// The end of a lease that was ended: over by every clock.
pub(super) const OVER: Micros = 0;

/// The longest span: two of them are less than an item's numbers may be.
const LONGEST: Micros = Micros::MAX / 4;

/// How long after its expiry an item is left to [`Store::purge`](crate::store::Store::purge) before DynamoDB deletes it
/// by its own clock: more than any two clocks should disagree.
const TTL_DELAY: Micros = 3_600_000_000;

/// The machine's time of day, asked for every time: the machines at one table have nothing else in common. Not
/// [`SystemClock`](crate::stores::SystemClock), which would not follow when a machine's clock is set right.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// `duration` in microseconds; what is longer than nothing is at least one.
pub(super) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(LONGEST).min(LONGEST)
}

/// From `now` until `then`; zero when that is over.
pub(super) fn until(then: Micros, now: Micros) -> Duration {
    Duration::from_micros(then.saturating_sub(now))
}

/// The time-to-live of an item that expires then, in seconds.
pub(super) fn ttl(expires: Micros) -> u64 {
    expires.saturating_add(TTL_DELAY).div_ceil(1_000_000)
}
