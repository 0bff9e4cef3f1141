//! How often, how long and how fast a request is sent again.

use std::fmt;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

use super::vendor::Vendor;

/// Between the end of all tries and the end of the server's memory.
const MARGIN: Duration = Duration::from_secs(60);

/// How a request is sent again. The defaults: 5 tries within 5 minutes, the first pause about half a second, each twice as
/// long as the one before, at most 30 seconds; besides these, up to 20 tries while the first one is still in progress.
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::client::{RetryPolicy, Vendor};
///
/// RetryPolicy::default().tries(3).check(&Vendor::stripe())?;
/// // After a day Stripe may have forgotten the key, and would carry the request out again.
/// assert!(RetryPolicy::default().deadline(Duration::from_secs(86_400)).check(&Vendor::stripe()).is_err());
/// # Ok::<_, idempotent_runtime::client::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RetryPolicy {
    pub(super) tries: u32,
    pub(super) in_progress_tries: u32,
    pub(super) deadline: Duration,
    first_pause: Duration,
    longest_pause: Duration,
    pub(super) budget: f64,
}

/// Why a policy cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// There would be no try at all.
    NoTries,
    /// The last try could come when the server has forgotten the key, and would be carried out as a new request.
    DeadlineBeyondTtl,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 5,
            in_progress_tries: 20,
            deadline: Duration::from_secs(5 * 60),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            budget: 0.2,
        }
    }
}

impl RetryPolicy {
    /// How often a request is sent, the first time included.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// How often more it is sent while the server says that the first one is still in progress.
    pub fn in_progress_tries(mut self, tries: u32) -> Self {
        self.in_progress_tries = tries;
        self
    }

    /// From the first try on, no other begins later than this. Less than what the server keeps a response.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The first pause, and the longest. Up to as much again is added at random.
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_pause, self.longest_pause) = (first, longest.max(first));
        self
    }

    /// How many retries there may be for each request to one host, on average: 0.2 by default, so that retries make no more than
    /// a fifth of the load. Ten are free.
    pub fn budget(mut self, retries: f64) -> Self {
        self.budget = retries;
        self
    }

    /// Whether it can be used with this server.
    ///
    /// # Errors
    /// When it would never send, or send when the key may be forgotten.
    pub fn check(&self, vendor: &Vendor) -> Result<(), PolicyError> {
        if self.tries == 0 {
            return Err(PolicyError::NoTries);
        }
        if self.deadline.saturating_add(MARGIN) >= vendor.ttl {
            return Err(PolicyError::DeadlineBeyondTtl);
        }
        Ok(())
    }

    /// The pauses before each further try, jittered, without end.
    pub(super) fn pauses_of_a_request(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        ExponentialBuilder::default()
            .with_min_delay(self.first_pause)
            .with_max_delay(self.longest_pause)
            .with_factor(2.0)
            .with_jitter()
            .without_max_times()
            .build()
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTries => "a policy needs at least one try",
            Self::DeadlineBeyondTtl => {
                "the deadline must end a minute before the server forgets the key, or a late try is carried out anew"
            }
        })
    }
}

impl std::error::Error for PolicyError {}
