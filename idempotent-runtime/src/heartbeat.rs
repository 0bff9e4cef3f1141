//! Renewal of a lease, on a task of its own, for as long as the body runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::asking::bounded;
use crate::attempt::Owned;
use crate::events;
use crate::store::Write;

const LONGEST_INTERVAL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Renews while it exists.
#[derive(Debug)]
pub(crate) struct Heartbeat(AbortHandle);

impl Heartbeat {
    /// Starts to renew the lease of `attempt`. Without a runtime nothing renews, and the lease ends by itself.
    pub(crate) fn start(attempt: &Arc<Owned>) -> Option<Self> {
        let runtime = Handle::try_current().ok()?;
        Some(Self(runtime.spawn(beat(Arc::clone(attempt))).abort_handle()))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Renews every third of the lease, more often while the store does not answer, and at most for `max_run`: a body that
/// hangs does not keep its key for ever.
async fn beat(attempt: Arc<Owned>) {
    let call = &*attempt.call;
    let Some(store) = call.core.store.as_deref() else { return };
    // Nobody lives to see a longer one, and the clock could not hold it.
    let interval = (call.lease.duration / 3).min(LONGEST_INTERVAL);
    let started = Instant::now();
    let mut confirmed_at = attempt.asked_at;
    let mut next = confirmed_at + interval;
    while started.elapsed() < call.core.settings.max_run {
        sleep_until(next).await;
        let asked_at = Instant::now();
        if asked_at > next + interval {
            events::renewal_late(call, attempt.number, asked_at - next);
        }
        match bounded(store, "renew", interval, store.renew(&call.key, call.owner, call.lease)).await {
            Ok(Write::Applied) => {
                confirmed_at = asked_at;
                next = asked_at + interval;
            }
            // The end of the body is being recorded, and is recorded.
            Ok(Write::Lost) if attempt.has_ended() => return,
            Ok(Write::Lost) => {
                events::lease_lost(call, attempt.number);
                return attempt.lose();
            }
            Err(_) => {
                if confirmed_at.elapsed() >= call.lease.duration {
                    lose_unconfirmed(&attempt);
                }
                next = Instant::now() + interval / 4;
            }
        }
    }
    events::max_run_over(call, attempt.number);
    sleep_until(confirmed_at + call.lease.duration.min(LONGEST_INTERVAL)).await;
    lose_unconfirmed(&attempt);
}

/// Nobody may have taken over yet, but from now on somebody can.
fn lose_unconfirmed(attempt: &Owned) {
    if !attempt.is_lost() && !attempt.has_ended() {
        events::lease_unconfirmed(&attempt.call, attempt.number);
        attempt.lose();
    }
}
