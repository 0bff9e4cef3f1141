//! A server that dies, comes back, or hangs, in the middle of traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::stores::DynamoDbStore;
use idempotent_runtime::{Error, Idempotency};
use tests::Runs;
use tests::servers::dynamodb::{DynamoDb, client};
use tests::servers::{Folder, free_port};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::*;

/// How long a call may take: the store's timeout before the body and after it, and some time for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(8);

async fn on(server: &DynamoDb) -> Idempotency {
    let store = DynamoDbStore::builder(client(&server.endpoint())).table(table()).open().await.unwrap();
    Idempotency::builder().store(store).store_timeout(TIMEOUT).build().unwrap()
}

/// Callers that send new keys, twice each, until they are stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    callers: JoinSet<()>,
}

impl Traffic {
    fn start(idempotency: &Idempotency) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut callers = JoinSet::new();
        for caller in 0..16 {
            let (idempotency, stop, answered) =
                (idempotency.clone(), Arc::clone(&stop), Arc::clone(&answered));
            callers.spawn(async move {
                for n in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let runs = Runs::default();
                    for _ in 0..2 {
                        let begun = Instant::now();
                        let call = idempotency.operation("charge").key(&(caller, n)).fingerprint(&n);
                        let result = call.run(|_| async { Ok::<_, Error>(runs.count()) }).await;
                        assert!(begun.elapsed() < LONGEST, "a call took {:?}", begun.elapsed());
                        if let Ok(value) = result {
                            assert_eq!(value, 1);
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    assert!(runs.total() <= 1, "a body ran twice");
                }
            });
        }
        Self { stop, answered, callers }
    }

    /// Waits until calls are answered again.
    async fn flows(&self) {
        let before = self.answered.load(Ordering::SeqCst);
        let begun = Instant::now();
        while self.answered.load(Ordering::SeqCst) < before + 100 {
            assert!(begun.elapsed() < Duration::from_secs(30), "calls work again without a restart");
            sleep(Duration::from_millis(10)).await;
        }
    }

    async fn end(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(caller) = self.callers.join_next().await {
            caller.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_is_killed_and_started_again() {
    let mut server = DynamoDb::start_in(Folder::new("dynamodb"), free_port());
    let traffic = Traffic::start(&on(&server).await);
    for signal in ["KILL", "TERM"] {
        traffic.flows().await;
        let port = server.port();
        let folder = tokio::task::spawn_blocking(move || server.end(signal)).await.unwrap();
        sleep(Duration::from_millis(1500)).await;
        server = tokio::task::spawn_blocking(move || DynamoDb::start_in(folder, port)).await.unwrap();
        traffic.flows().await;
    }
    traffic.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_hangs_and_goes_on() {
    let server = DynamoDb::start();
    let traffic = Traffic::start(&on(&server).await);
    for _ in 0..2 {
        traffic.flows().await;
        server.signal("STOP");
        sleep(Duration::from_millis(2500)).await;
        server.signal("CONT");
        traffic.flows().await;
    }
    traffic.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_callers_of_one_key_one_runs_and_all_get_its_result() {
    let store = builder().open().await.unwrap();
    let idempotency = Idempotency::builder().store(store).build().unwrap();
    let runs = Runs::default();
    let mut callers = JoinSet::new();
    for _ in 0..64 {
        let (idempotency, runs) = (idempotency.clone(), runs.clone());
        callers.spawn(async move {
            let operation = idempotency.operation("charge").wait(Duration::from_secs(30));
            let body = |_| async {
                sleep(Duration::from_millis(300)).await;
                Ok::<_, Error>(runs.count())
            };
            operation.key("one").run(body).await.unwrap()
        });
    }
    while let Some(value) = callers.join_next().await {
        assert_eq!(value.unwrap(), 1);
    }
    assert_eq!(runs.total(), 1);
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_behind_that_blocks() {
    use idempotent_runtime::store::{OwnerToken, Store};
    let store = builder().open().await.unwrap();
    for n in 0..50_u64 {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        // Dropped at some moment between sending and the answer; the same token then gets its grant, sent or not.
        let _ = tokio::time::timeout(Duration::from_micros(n * 40), store.reserve(request(&k, owner))).await;
        assert_eq!(grant(&store, &k, owner).await.attempt, 1);
    }
    assert!(store.purge(1).await.is_ok());
}
