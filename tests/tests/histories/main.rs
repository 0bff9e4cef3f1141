//! Many threads at one store, at few keys, without pause: what each was told, and when, must be what one store can have said
//! that does one thing after the other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod history;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use history::{Event, History, Said};
use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Lease, OwnerToken, Release, Reserve, Settled, Step, StepState, Store, StoreResult, Stored, TakeOver,
};
use idempotent_runtime::stores::MemoryStore;
use tests::poll_times;

const THREADS: usize = 12;
/// How many callers each key has, and how many there are in all.
const CALLERS: u64 = 100;
const ALL_CALLERS: u64 = 20_000;
const KEEP: Duration = Duration::from_secs(3600);

#[test]
fn the_memory_store_does_one_thing_after_the_other() {
    let store = MemoryStore::new();
    stress(&[store.clone(), store]);
}

/// Two writer threads with a connection each, at one file.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn the_sqlite_store_does_one_thing_after_the_other() {
    let folder = tests::servers::Folder::new("histories");
    let file = folder.path().join("records.db");
    let open = || async {
        let builder = idempotent_runtime::stores::SqliteStore::builder(&file);
        builder.open().await.unwrap()
    };
    let stores = [open().await, open().await];
    tokio::task::spawn_blocking(move || stress(&stores)).await.unwrap();
}

/// Lets threads at two handles go at the same keys, and judges what they were told.
fn stress<S: Store + Clone>(stores: &[S; 2]) {
    let (history, next) = (History::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, history, next) = (&stores[thread % 2], &history, &next);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    loop {
                        let caller = next.fetch_add(1, Ordering::Relaxed);
                        if caller >= ALL_CALLERS {
                            return;
                        }
                        Caller { store, history, key: key(caller / CALLERS), owner: OwnerToken::random() }
                            .call()
                            .await;
                    }
                });
            });
        }
    });
    let told = history.judge();
    println!("{told:?}");
    // Otherwise it has shown nothing.
    assert!(told.take_overs > 0 && told.lost > 0 && told.results > 0, "{told:?}");
}

fn key(n: u64) -> RecordKey {
    RecordKey::new("charge", format!("test/charge/{n}"))
}

/// One attempt: it takes the key if it can, writes, pauses or goes away.
struct Caller<'a, S> {
    store: &'a S,
    history: &'a History,
    key: RecordKey,
    owner: OwnerToken,
}

impl<S: Store> Caller<'_, S> {
    async fn call(&self) {
        // Half of the leases are over at once, so that others take over from who is still at work.
        let duration = if rand::random() { Duration::ZERO } else { Duration::from_micros(300) };
        let lease = Lease { duration, unknown_ttl: KEEP };
        let fingerprint = Fingerprint::from_parts(1, [7; 32]);
        let request = Reserve {
            key: &self.key,
            owner: self.owner,
            fingerprint,
            lease,
            take_over: TakeOver::Always,
            max_attempts: 1000,
        };
        if rand::random_ratio(1, 20) {
            // It asks and goes away; nobody hears what was said.
            let mut asked = Box::pin(self.store.reserve(request));
            let _ = poll_times(asked.as_mut(), 1);
            return;
        }
        if rand::random_ratio(1, 20) {
            // Nothing has expired, so that nobody may find less than before.
            assert_eq!(self.store.purge(100).await.unwrap(), 0);
        }
        let said = self.ask(self.store.reserve(request)).await;
        if !matches!(said, Said::Granted { .. }) {
            self.ask(self.store.load(&self.key)).await;
            return;
        }
        let step = Step { name: "one".into(), state: StepState::Begun };
        self.ask(self.store.put_step(&self.key, self.owner, &step, lease)).await;
        tokio::task::yield_now().await;
        self.ask(self.store.renew(&self.key, self.owner, lease)).await;
        match rand::random_range(0..12) {
            0 => {
                let settled = self.result();
                self.ask(self.store.complete(&self.key, self.owner, &settled, KEEP)).await;
                self.ask(self.store.load(&self.key)).await;
            }
            1..4 => drop(self.store.release(&self.key, self.owner, Release::Abandon).await.unwrap()),
            _ => {}
        }
    }

    fn result(&self) -> Settled {
        Settled::Completed(Stored { version: 1, bytes: Arc::from(*self.owner.as_bytes()) })
    }

    /// Asks, and writes down what was said from when to when.
    async fn ask<T: Into<Said>>(&self, asked: impl Future<Output = StoreResult<T>>) -> Said {
        let began = self.history.now();
        let said: Said = asked.await.unwrap().into();
        let ended = self.history.now();
        let key = self.key.as_str().to_owned();
        self.history.write(key, Event { owner: self.owner, began, ended, said });
        said
    }
}
