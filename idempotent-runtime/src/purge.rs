//! Deleting expired records in the background, in whatever store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::events;
use crate::idempotency::Idempotency;
use crate::meters::StoreCall;
use crate::store::Store;

/// So many records are asked to be purged at once; a store that holds a lock for that holds it shortly.
const BATCH: usize = 1000;

/// A store that does not answer is asked again at the next turn.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store is given a moment for others between two batches.
const BREATH: Duration = Duration::from_millis(5);

/// Purges in the background for as long as it lives. Made by [`Idempotency::purge_every`].
#[must_use = "the purging ends when this is dropped"]
pub struct Purging(Option<AbortHandle>);

impl Purging {
    /// Goes on for as long as the runtime lives.
    pub fn forever(mut self) {
        self.0 = None;
    }
}

impl Drop for Purging {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl fmt::Debug for Purging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.0.as_ref().is_some_and(|task| !task.is_finished());
        f.debug_struct("Purging").field("running", &running).finish()
    }
}

impl Idempotency {
    /// Deletes expired records from the store, in batches, every `interval` or so, on the current tokio runtime, until
    /// what it returns is dropped. Nothing happens on a disabled handle, or where there is no runtime.
    ///
    /// Correctness never rests on it: an expired record is as good as none. It keeps a table small; on stores that drop
    /// records by themselves (memory, Redis, `DynamoDB`) it is not needed. Several processes may do it at one store.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use idempotent_runtime::{Idempotency, stores::MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let _purging = idempotency.purge_every(Duration::from_secs(60));
    /// // … serve requests …
    /// # }
    /// ```
    pub fn purge_every(&self, interval: Duration) -> Purging {
        let (Some(store), Ok(runtime)) = (self.store(), Handle::try_current()) else { return Purging(None) };
        let task =
            runtime.spawn(purge_again_and_again(Arc::clone(store), interval.max(Duration::from_millis(1))));
        Purging(Some(task.abort_handle()))
    }
}

async fn purge_again_and_again(store: Arc<dyn Store>, interval: Duration) {
    loop {
        // Not all processes at once.
        sleep(interval.mul_f64(rand::random_range(0.9..1.1))).await;
        let mut purged = 0_usize;
        loop {
            let asked = StoreCall::begin("purge");
            match timeout(PATIENCE, store.purge(BATCH)).await.inspect(|answer| asked.answered(answer)) {
                Ok(Ok(batch)) => {
                    purged = purged.saturating_add(batch);
                    if batch < BATCH {
                        break;
                    }
                    sleep(BREATH).await;
                }
                Ok(Err(error)) => {
                    events::not_purged(&error);
                    break;
                }
                Err(_) => {
                    events::not_purged_in_time();
                    break;
                }
            }
        }
        if purged > 0 {
            events::purged(purged);
        }
    }
}
