//! Waiting for another call's result: one look-out for each key of a store, however many callers wait, and on however many
//! handles of the process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::asking::{ask, bounded};
use crate::chance;
use crate::idempotency::Core;
use crate::key::RecordKey;
use crate::store::{Record, State, Store, StoreError, Watch};

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

/// The look-outs of one store.
#[derive(Debug)]
pub(crate) struct Waiting {
    lookouts: Mutex<HashMap<Arc<str>, Weak<Lookout>>>,
    /// While it is here, no other store has its address.
    store: Arc<dyn Store>,
}

/// Those of every store of which there is a handle, by its address.
static OF_STORES: LazyLock<Mutex<HashMap<usize, Weak<Waiting>>>> = LazyLock::new(Mutex::default);

fn of_stores() -> MutexGuard<'static, HashMap<usize, Weak<Waiting>>> {
    OF_STORES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(store: &Arc<dyn Store>) -> usize {
    Arc::as_ptr(store).cast::<()>().addr()
}

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
        // Nobody waits without a store.
        let Some(waiting) = &core.waiting else { return Ok(News::Free) };
        let lookout = waiting.lookout(core, key);
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
    /// The look-outs of `store`: the same for every handle that was given this one.
    pub(crate) fn at(store: &Arc<dyn Store>) -> Arc<Self> {
        let mut all = of_stores();
        if let Some(waiting) = all.get(&address(store)).and_then(Weak::upgrade) {
            return waiting;
        }
        let waiting = Arc::new(Self { lookouts: Mutex::default(), store: Arc::clone(store) });
        all.insert(address(store), Arc::downgrade(&waiting));
        waiting
    }

    /// The look-out for `key`; posts one if there is none.
    fn lookout(&self, core: &Arc<Core>, key: &RecordKey) -> Arc<Lookout> {
        let mut lookouts = self.lookouts.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut lookouts = self.lookouts.lock().unwrap_or_else(PoisonError::into_inner);
        if lookouts.get(key.as_str()).is_some_and(|posted| posted.ptr_eq(lookout)) {
            lookouts.remove(key.as_str());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut all = of_stores();
        // Meanwhile another handle may have been given the same store.
        if all.get(&address(&self.store)).is_some_and(|waiting| waiting.strong_count() == 0) {
            all.remove(&address(&self.store));
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

    /// Takes the look-out down.
    fn remove(&self) {
        if let Some(waiting) = &self.core.waiting {
            waiting.remove(&self.key, &self.lookout);
        }
    }

    fn report(&self, report: Report) {
        self.remove();
        if let Some(lookout) = self.lookout.upgrade() {
            lookout.0.send_replace(report);
        }
    }
}

impl Drop for Post {
    /// Also when the task is dropped before its end, with its runtime.
    fn drop(&mut self) {
        self.remove();
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

#[cfg(all(test, feature = "memory"))]
mod tests {
    use super::*;
    use crate::stores::MemoryStore;

    #[test]
    fn a_store_has_one_table_for_as_long_as_it_has_a_handle() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let other: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (first, second) = (Waiting::at(&store), Waiting::at(&store));
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &Waiting::at(&other)));
        drop(first);
        assert!(of_stores().contains_key(&address(&store)));
        drop(second);
        assert!(!of_stores().contains_key(&address(&store)));
    }
}
