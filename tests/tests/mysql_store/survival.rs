//! A server that is killed, restarted or stopped in the middle of traffic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_runtime::Idempotency;
use idempotent_runtime::stores::MySqlStore;
use tests::servers::mariadb::MariaDb;

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(2);

/// What traffic has seen.
#[derive(Debug, Default)]
struct Seen {
    runs: Mutex<std::collections::HashMap<String, u32>>,
    succeeded: Mutex<Vec<String>>,
    slowest: Mutex<Duration>,
    stop: AtomicBool,
}

impl Seen {
    fn took(&self, time: Duration) {
        let mut slowest = self.slowest.lock().unwrap();
        *slowest = slowest.max(time);
    }
}

/// Eight tasks that call one key after the other, each key twice.
fn traffic(idempotency: &Idempotency, seen: &Arc<Seen>) -> Vec<tokio::task::JoinHandle<()>> {
    let worker = |task: u32| {
        let (idempotency, seen) = (idempotency.clone(), Arc::clone(seen));
        tokio::spawn(async move {
            for n in 0.. {
                if seen.stop.load(Ordering::SeqCst) {
                    return;
                }
                let name = format!("{task}-{n}");
                for _ in 0..2 {
                    let begun = Instant::now();
                    let call = idempotency.operation("charge").key(&name);
                    let (count, counted) = (Arc::clone(&seen), name.clone());
                    let result = call
                        .run(|_| async move {
                            *count.runs.lock().unwrap().entry(counted).or_default() += 1;
                            Ok::<_, idempotent_runtime::Error>(n)
                        })
                        .await;
                    seen.took(begun.elapsed());
                    match result {
                        Ok(value) => {
                            assert_eq!(value, n);
                            seen.succeeded.lock().unwrap().push(name.clone());
                        }
                        Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            }
        })
    };
    (0..8).map(worker).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_stopped_killed_and_restarted_costs_time_only() {
    let mut server = MariaDb::start_with(&["--skip-log-bin"]);
    let store = MySqlStore::connect(&server.database("t")).await.unwrap();
    let idempotency = Idempotency::builder()
        .store(store.clone())
        .store_timeout(TIMEOUT)
        .record_patience(Duration::from_secs(4))
        .build()
        .unwrap();
    let seen = Arc::new(Seen::default());
    let tasks = traffic(&idempotency, &seen);
    tokio::time::sleep(Duration::from_millis(700)).await;

    server.signal("STOP");
    tokio::time::sleep(TIMEOUT * 2).await;
    server.signal("CONT");
    tokio::time::sleep(Duration::from_millis(700)).await;
    server = tokio::task::spawn_blocking(move || server.restart("KILL")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    server = tokio::task::spawn_blocking(move || server.restart("TERM")).await.unwrap();

    // Without a restart of the application, calls succeed again.
    let before = seen.succeeded.lock().unwrap().len();
    let waited = Instant::now();
    while seen.succeeded.lock().unwrap().len() < before + 50 {
        assert!(waited.elapsed() < Duration::from_secs(20), "no calls succeed after the restart");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    seen.stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    idempotency.shutdown().await;

    let runs = seen.runs.lock().unwrap().clone();
    assert!(runs.values().all(|runs| *runs == 1), "nothing runs twice");
    let slowest = *seen.slowest.lock().unwrap();
    assert!(slowest < TIMEOUT + Duration::from_secs(6), "no call hangs: {slowest:?}");
    // What was acknowledged is still there.
    for name in seen.succeeded.lock().unwrap().iter() {
        assert_eq!(runs[name], 1, "{name}");
    }
    grant(&store, &key("afterwards"), idempotent_runtime::store::OwnerToken::random()).await;
    drop(server);
}
