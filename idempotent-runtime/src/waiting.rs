//! Waiting for another call's result: one look-out for each key and process, however many callers wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::asking::{ask, bounded};
use crate::chance;
use crate::idempotency::Core;
use crate::key::RecordKey;
use crate::store::{Record, State, StoreError, Watch};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Where the store notifies, polling is for the notification that was lost.
const PAUSE_BESIDE_NOTIFICATION: Duration = Duration::from_secs(2);

/// What has become of a record that was running.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// It was settled.
    Settled(Box<Record>),
    /// It is gone, its lease is over, or it is another one: try to reserve.
    Free,
}

/// The look-outs of one handle.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<Arc<str>, Weak<Lookout>>>);

/// What the waiters of one key listen to. It lives as long as one of them does.
#[derive(Debug)]
struct Lookout(watch::Sender<Report>);

#[derive(Clone, Debug)]
enum Report {
    NothingYet,
    News(News),
    Failed(Arc<StoreError>),
    /// The look-out's runtime has ended; another one has to be posted.
    Gone,
}

/// Waits until the record of `key` is not running any more.
pub(crate) async fn news(core: &Arc<Core>, key: &RecordKey) -> Result<News, Arc<StoreError>> {
    loop {
        let lookout = core.waiting.lookout(core, key);
        let mut reports = lookout.0.subscribe();
        loop {
            let report = reports.borrow_and_update().clone();
            match report {
                Report::News(news) => return Ok(news),
                Report::Failed(error) => return Err(error),
                Report::Gone => {
                    // If it is this runtime that ends, it has to get at this task too.
                    yield_now().await;
                    break;
                }
                // The sender is in `lookout`, so that this cannot fail.
                Report::NothingYet => drop(reports.changed().await),
            }
        }
    }
}

impl Waiting {
    /// The look-out for `key`; posts one if there is none.
    fn lookout(&self, core: &Arc<Core>, key: &RecordKey) -> Arc<Lookout> {
        let mut lookouts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lookout) = lookouts.get(key.as_str()).and_then(Weak::upgrade) {
            return lookout;
        }
        let lookout = Arc::new(Lookout(watch::Sender::new(Report::NothingYet)));
        lookouts.insert(Arc::clone(key.shared()), Arc::downgrade(&lookout));
        let post = Post { core: Arc::clone(core), key: key.clone(), lookout: Arc::downgrade(&lookout) };
        // A runtime that is shutting down drops the task at once, and that takes the lock again.
        drop(lookouts);
        tokio::spawn(post.watch());
        lookout
    }

    /// Takes down `lookout`, so that who comes next posts a new one.
    fn remove(&self, key: &RecordKey, lookout: &Weak<Lookout>) {
        let mut lookouts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lookouts.get(key.as_str()).is_some_and(|posted| posted.ptr_eq(lookout)) {
            lookouts.remove(key.as_str());
        }
    }
}

/// The task behind a look-out.
struct Post {
    core: Arc<Core>,
    key: RecordKey,
    lookout: Weak<Lookout>,
}

impl Post {
    async fn watch(self) {
        let report = self.look_until_changed().await;
        self.report(report);
    }

    /// Looks at the record again and again. Ends early when nobody waits any more.
    async fn look_until_changed(&self) -> Report {
        let mut pause = FIRST_PAUSE;
        let mut arguments = None;
        while self.lookout.strong_count() > 0 {
            let notified = self.notification().await;
            let record =
                ask(&self.core, "load", self.core.settings.store_timeout, |store| store.load(&self.key))
                    .await;
            let lease_left = match record {
                Err(error) if error.is_transient() => pause,
                Err(error) => return Report::Failed(Arc::new(error)),
                Ok(None) => return Report::News(News::Free),
                Ok(Some(record)) => match record.state {
                    State::Running { lease_left, .. } if lease_left.is_zero() => {
                        return Report::News(News::Free);
                    }
                    // Who waited for other arguments need not wait for these to end: they are refused now.
                    State::Running { .. }
                        if *arguments.get_or_insert(record.fingerprint) != record.fingerprint =>
                    {
                        return Report::News(News::Free);
                    }
                    State::Running { lease_left, .. } => lease_left,
                    State::Settled(_) => return Report::News(News::Settled(Box::new(record))),
                },
            };
            // The lease may end without anybody's doing, and that is no change that a store tells of.
            if let Some(notified) = notified {
                let _ = timeout(lease_left.min(PAUSE_BESIDE_NOTIFICATION), notified).await;
            } else {
                sleep(lease_left.min(pause.mul_f64(chance::jitter()))).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        Report::Gone
    }

    /// What ends when the record changes, counted from before it is looked at.
    async fn notification(&self) -> Option<Watch> {
        let store = self.core.store.as_deref()?;
        bounded(store, "watch", self.core.settings.store_timeout, store.watch(&self.key)).await.ok()?
    }

    fn report(&self, report: Report) {
        self.core.waiting.remove(&self.key, &self.lookout);
        if let Some(lookout) = self.lookout.upgrade() {
            lookout.0.send_replace(report);
        }
    }
}

impl Drop for Post {
    /// Also when the task is dropped before its end, with its runtime.
    fn drop(&mut self) {
        self.core.waiting.remove(&self.key, &self.lookout);
        if let Some(lookout) = self.lookout.upgrade() {
            lookout.0.send_if_modified(|report| {
                let unanswered = matches!(report, Report::NothingYet);
                if unanswered {
                    *report = Report::Gone;
                }
                unanswered
            });
        }
    }
}
