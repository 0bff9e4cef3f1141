//! Servers that are killed, stand still or cut connections in the middle of traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::store::{OwnerToken, State, Store, StoreErrorKind};
use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Error, Idempotency};
use tests::Runs;
use tests::servers::free_port;
use tests::servers::postgres::Postgres;

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(2);

fn handle(store: PostgresStore) -> Idempotency {
    Idempotency::builder().store(store).store_timeout(TIMEOUT).build().unwrap()
}

/// Calls every one of so many keys over and over, until told to stop: each body may run once.
struct Traffic {
    idempotency: Idempotency,
    runs: Arc<Vec<Runs>>,
    callers: Vec<tokio::task::JoinHandle<Duration>>,
    stop: tokio::sync::watch::Sender<bool>,
}

impl Traffic {
    fn start(idempotency: Idempotency, keys: usize) -> Self {
        let runs: Arc<Vec<Runs>> = Arc::new((0..keys).map(|_| Runs::default()).collect());
        let stop = tokio::sync::watch::Sender::new(false);
        let callers = (0..16)
            .map(|caller| {
                let (idempotency, runs, stop) = (idempotency.clone(), Arc::clone(&runs), stop.subscribe());
                tokio::spawn(async move {
                    let mut longest = Duration::ZERO;
                    for n in (0..keys).cycle().skip(caller * keys / 16) {
                        if *stop.borrow() {
                            break;
                        }
                        let begun = Instant::now();
                        let call = idempotency.operation("charge").key(&n);
                        let run = &runs[n];
                        let _ = call.run(|_| async { Ok::<_, Error>(run.count()) }).await;
                        longest = longest.max(begun.elapsed());
                    }
                    longest
                })
            })
            .collect();
        Self { idempotency, runs, callers, stop }
    }

    /// Nothing ran twice, no call hung, and calls work.
    async fn end(self) {
        let fresh = self.idempotency.operation("after");
        let begun = Instant::now();
        while fresh.key("1").run(|_| async { Ok::<_, Error>(1) }).await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "calls never work again");
        }
        self.stop.send_replace(true);
        for caller in self.callers {
            // Before the body and after it.
            let longest = caller.await.unwrap();
            assert!(longest < TIMEOUT * 2 + Duration::from_secs(2), "a call took {longest:?}");
        }
        self.idempotency.shutdown().await;
        let total: u32 = self.runs.iter().map(Runs::total).sum();
        assert!(total > 0);
        assert!(self.runs.iter().all(|runs| runs.total() <= 1), "a body ran twice");
    }
}

fn settings() -> [&'static str; 2] {
    // What is acknowledged has to survive a killed server, not a power loss.
    ["-c", "fsync=off"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_and_restarted() {
    for batch in [1, 32] {
        let server = Postgres::start(&settings());
        let (port, url) = (server.port(), server.url("postgres"));
        let store =
            PostgresStore::builder(PostgresStore::pool_for(&url).unwrap()).batch(batch).open().await.unwrap();
        let traffic = Traffic::start(handle(store), 3000);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let folder = tokio::task::spawn_blocking(move || {
            // At once, and its children with it: what the server itself does on QUIT is no better than a crash.
            let folder = server.end("QUIT");
            std::thread::sleep(Duration::from_millis(500));
            folder
        });
        let folder = folder.await.unwrap();
        let server =
            tokio::task::spawn_blocking(move || Postgres::resume(folder, port, &settings())).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        traffic.end().await;
        drop(server);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_cuts_all_connections_again_and_again() {
    let server = Postgres::start(&settings());
    let store = PostgresStore::builder(pool(&server.url("postgres"))).open().await.unwrap();
    let traffic = Traffic::start(handle(store), 3000);
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.psql(
            "postgres",
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND \
             backend_type = 'client backend'",
        );
    }
    traffic.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_stands_still() {
    let server = Postgres::start(&settings());
    let store = PostgresStore::builder(pool(&server.url("postgres"))).open().await.unwrap();
    let traffic = Traffic::start(handle(store), 3000);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let backends = server.psql(
        "postgres",
        "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
    );
    let all = |signal: &str| {
        server.signal(signal);
        let mut kill = std::process::Command::new("kill");
        kill.arg("-s").arg(signal).args(backends.split(' ')).stderr(std::process::Stdio::null());
        let _ = kill.status();
    };
    all("STOP");
    tokio::time::sleep(Duration::from_secs(5)).await;
    all("CONT");
    traffic.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_somebody_holds_is_not_waited_for_past_the_timeout() {
    let url = tests::servers::postgres::shared().database();
    let pool = pool(&url);
    let store = PostgresStore::builder(pool.clone()).open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let mut other =
        sqlx::Connection::begin(Box::leak(Box::new(pool.acquire().await.unwrap().detach()))).await.unwrap();
    sqlx::query("SELECT * FROM idempotency FOR UPDATE").execute(&mut *other).await.unwrap();
    // Every one of these is dropped in the middle of its statement.
    let result = completed("x");
    for _ in 0..20 {
        let completing = store.complete(&k, owner, &result, KEEP);
        let completing = tokio::time::timeout(Duration::from_millis(20), completing);
        assert!(completing.await.is_err());
    }
    // Others are not disturbed, although the pool has eight connections.
    tokio::time::sleep(Duration::from_secs(3)).await;
    grant(&store, &key("2"), OwnerToken::random()).await;
    other.rollback().await.unwrap();
    let _ = store.complete(&k, owner, &completed("x"), KEEP).await.unwrap();
    assert_eq!(held(&store, &k).await.state, State::Settled(completed("x")));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let url = format!("postgres://postgres@127.0.0.1:{}/none", free_port());
    let pool = sqlx::postgres::PgPoolOptions::new().acquire_timeout(Duration::from_millis(300));
    let store = PostgresStore::new(pool.connect_lazy(&url).unwrap());
    let error = store.load(&key("1")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
}

/// The application's own work has all connections: its calls end in time, nothing has run, and no key is lost by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_without_a_free_connection_costs_time_only() {
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_lazy(&tests::servers::postgres::shared().database()).unwrap();
    let store = PostgresStore::builder(pool.clone()).open().await.unwrap();
    let idempotency = Idempotency::builder()
        .store(store.clone())
        .store_timeout(Duration::from_millis(400))
        .wait(Duration::from_secs(30))
        .build()
        .unwrap();
    let runs = AtomicUsize::new(0);
    let call = async |key: &str| {
        let call = idempotency.operation("charge").key(key);
        call.run(|_| async { Ok::<usize, Error>(runs.fetch_add(1, Ordering::Relaxed)) }).await
    };
    let busy = pool.acquire().await.unwrap();
    for key in ["1", "2", "3"] {
        let error = call(key).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), ("store-unavailable", true), "{error}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    drop(busy);
    // What had been asked for in vain may have been granted since; it is given back, and these wait for that.
    for key in ["1", "2", "3"] {
        call(key).await.unwrap();
    }
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    idempotency.shutdown().await;
}
