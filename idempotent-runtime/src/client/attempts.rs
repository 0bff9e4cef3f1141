//! What is left of a request's tries, and how long to wait before the next one.

use std::time::Duration;

use tokio::time::Instant;

use super::budget::Budget;
use super::policy::RetryPolicy;

/// The tries of one request. Time is tokio's, which no change of the clock can move.
pub(super) struct Attempts<'p> {
    policy: &'p RetryPolicy,
    pauses: Box<dyn Iterator<Item = Duration> + Send>,
    began: Instant,
    made: u32,
    in_progress: u32,
}

impl<'p> Attempts<'p> {
    pub(super) fn new(policy: &'p RetryPolicy) -> Self {
        let pauses = Box::new(policy.pauses_of_a_request());
        Self { policy, pauses, began: Instant::now(), made: 0, in_progress: 0 }
    }

    /// How often it was sent.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// Counts a try that is about to be made.
    pub(super) fn begin(&mut self) -> u32 {
        self.made += 1;
        self.made
    }

    /// Waits, if there is another try after one that failed. The server's own wish is the shortest pause.
    pub(super) async fn after_failure(
        &mut self,
        wish: Option<Duration>,
        budget: &Budget,
        host: &str,
    ) -> bool {
        let failures = self.made - self.in_progress;
        failures < self.policy.tries && self.in_time(wish) && budget.spend(host) && self.pause(wish).await
    }

    /// The same after one that met the first, still in progress.
    pub(super) async fn after_in_progress(&mut self, wish: Option<Duration>) -> bool {
        self.in_progress += 1;
        self.in_progress <= self.policy.in_progress_tries && self.in_time(wish) && self.pause(wish).await
    }

    fn in_time(&self, wish: Option<Duration>) -> bool {
        self.began.elapsed().saturating_add(wish.unwrap_or_default()) < self.policy.deadline
    }

    async fn pause(&mut self, wish: Option<Duration>) -> bool {
        let pause = self.pauses.next().unwrap_or_default().max(wish.unwrap_or_default());
        if !self.in_time(Some(pause)) {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}
