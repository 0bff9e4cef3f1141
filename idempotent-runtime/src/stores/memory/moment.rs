//! Points in time, in eight bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LONGEST: Duration = Duration::from_secs(200 * 365 * 24 * 60 * 60);

/// Nanoseconds since the Unix epoch, until the year 2554, which stands for everything after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

impl Moment {
    /// The moment that a clock shows.
    pub(super) fn of(since_epoch: Duration) -> Self {
        Self(nanos(since_epoch))
    }

    /// The moment that an earlier page of a list ended with.
    pub(super) fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(super) fn as_nanos(self) -> u64 {
        self.0
    }

    pub(super) fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// `span` later. 200 years stand for every longer span: two of them have room before the end of time, and a lease that
    /// was cut off there would leave nothing of what comes after it.
    pub(super) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span.min(LONGEST))))
    }

    pub(super) fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }

    /// From `now` until this moment; zero when it has passed.
    pub(super) fn left(self, now: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(now.0))
    }

    pub(super) fn has_come(self, now: Self) -> bool {
        self <= now
    }
}

impl From<Moment> for SystemTime {
    fn from(moment: Moment) -> Self {
        UNIX_EPOCH + Duration::from_nanos(moment.0)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
