//! Servers and connections that go away in the middle of traffic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_runtime::store::{OwnerToken, Store, StoreErrorKind};
use idempotent_runtime::stores::RedisStore;
use idempotent_runtime::testing::{Fault, Faults};
use idempotent_runtime::{Error, Idempotency};
use tests::servers::redis::{Cluster, Redis};
use tokio::task::JoinSet;

use crate::proxy::Proxy;
use crate::support::*;

/// The longest a call of these tests may take: each of its two store calls has a second, with some room.
const LONGEST: Duration = Duration::from_secs(5);

/// Many callers, each with keys of its own and each key asked for again and again.
#[derive(Clone)]
pub(crate) struct Traffic {
    idempotency: Idempotency,
    runs: Arc<Mutex<HashMap<String, u32>>>,
}

impl Traffic {
    pub(crate) fn on(store: impl Store) -> Self {
        let idempotency =
            Idempotency::builder().store(store).store_timeout(Duration::from_secs(1)).build().unwrap();
        Self { idempotency, runs: Arc::default() }
    }

    /// One call; its body runs at most once for each key, whatever happens, since `on_crash` is to refuse.
    pub(crate) async fn call(&self, key: &str) -> Result<u32, Error> {
        let began = Instant::now();
        let (runs, of_body) = (Arc::clone(&self.runs), key.to_owned());
        let call = self.idempotency.operation("charge").key(key);
        let value = call.run(async move |_| {
            *runs.lock().unwrap().entry(of_body).or_default() += 1;
            tokio::time::sleep(Duration::from_millis(3)).await;
            Ok::<_, Error>(7)
        });
        let value = value.await;
        assert!(began.elapsed() < LONGEST, "a call took {:?}", began.elapsed());
        value
    }

    /// Calls until told to stop; gives back how many came to an end well.
    pub(crate) fn flow(&self, callers: usize, stop: &tokio::sync::watch::Receiver<bool>) -> JoinSet<usize> {
        let mut flow = JoinSet::new();
        for caller in 0..callers {
            let (traffic, stop) = (self.clone(), stop.clone());
            flow.spawn(async move {
                let mut well = 0;
                for n in 0.. {
                    if *stop.borrow() {
                        break;
                    }
                    let key = format!("{caller}-{n}");
                    for _ in 0..3 {
                        well += usize::from(traffic.call(&key).await.is_ok());
                    }
                }
                well
            });
        }
        flow
    }

    /// Traffic while `trouble` happens and for a while afterwards; then calls must work.
    pub(crate) async fn survives(&self, trouble: impl Future<Output = ()>) {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let flow = self.flow(16, &stopped);
        tokio::time::sleep(Duration::from_millis(300)).await;
        trouble.await;
        let began = Instant::now();
        while self.call(&format!("after-{:?}", began.elapsed())).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "calls do not work again");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.send(true).unwrap();
        let well: usize = flow.join_all().await.into_iter().sum();
        assert!(well > 0);
        self.nothing_ran_twice();
    }

    pub(crate) fn nothing_ran_twice(&self) {
        let runs = self.runs.lock().unwrap();
        let twice: Vec<_> = runs.iter().filter(|(_, runs)| **runs > 1).collect();
        assert!(!runs.is_empty() && twice.is_empty(), "{twice:?}");
    }
}

async fn store(url: String) -> RedisStore {
    RedisStore::builder(url).response_timeout(Duration::from_millis(400)).open().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_and_comes_back() {
    let mut server = Redis::start();
    let traffic = Traffic::on(store(server.url(0)).await);
    traffic
        .survives(async { tokio::task::block_in_place(|| server.restart("KILL", Duration::from_secs(1))) })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_stands_still_and_goes_on() {
    let server = Redis::start();
    let traffic = Traffic::on(store(server.url(0)).await);
    traffic
        .survives(async {
            server.signal("STOP");
            tokio::time::sleep(Duration::from_secs(3)).await;
            server.signal("CONT");
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_manager_whose_server_is_killed_and_comes_back() {
    let mut server = Redis::start();
    let config = redis::aio::ConnectionManagerConfig::new()
        .set_response_timeout(Some(Duration::from_millis(400)))
        .set_max_delay(Duration::from_millis(200));
    let client = redis::Client::open(server.url(0)).unwrap();
    let manager = client.get_connection_manager_with_config(config).await.unwrap();
    let traffic = Traffic::on(RedisStore::from_manager(manager).open().await.unwrap());
    traffic
        .survives(async { tokio::task::block_in_place(|| server.restart("KILL", Duration::from_secs(1))) })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_of_a_cluster_that_is_killed_and_comes_back() {
    let mut cluster = Cluster::start();
    let traffic = Traffic::on(store(cluster.url()).await);
    traffic
        .survives(async {
            tokio::task::block_in_place(|| cluster.nodes()[1].restart("KILL", Duration::from_secs(1)));
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_are_cut_and_answers_that_are_lost() {
    let proxy = Proxy::to(shared().port()).await;
    let builder =
        RedisStore::builder(proxy.url()).prefix("cut:").response_timeout(Duration::from_millis(400));
    let traffic = Traffic::on(builder.open().await.unwrap());
    for n in 0..40 {
        // The answer of the reservation, of the completion, or of what is asked again.
        proxy.lose_answer(1 + n % 4);
        let key = format!("o-{n}");
        for _ in 0..3 {
            assert_eq!(traffic.call(&key).await.unwrap(), 7);
        }
    }
    traffic.nothing_ran_twice();
    traffic
        .survives(async {
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                proxy.cut();
            }
            proxy.silence(true);
            tokio::time::sleep(Duration::from_secs(1)).await;
            proxy.silence(false);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_by_a_seed() {
    for seed in 0..4 {
        let faults = Faults::new(fresh().await).one_of(7, seed, Fault::LoseReply).one_of(
            11,
            seed + 100,
            Fault::LoseRequest,
        );
        let traffic = Traffic::on(faults);
        let mut calls = JoinSet::new();
        for n in 0..200 {
            let traffic = traffic.clone();
            calls.spawn(async move { traffic.call(&format!("o-{}", n % 50)).await });
        }
        calls.join_all().await;
        traffic.nothing_ran_twice();
    }
}

/// Two applications that think they have a database each would find each other's records in one.
#[tokio::test]
async fn a_database_of_a_cluster_is_refused() {
    for path in ["1", "shop", "0/1"] {
        let error = RedisStore::open(format!("redis-cluster://127.0.0.1:1/{path}")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
    }
    for path in ["", "/", "/0"] {
        let error = RedisStore::open(format!("redis-cluster://127.0.0.1:1{path}")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_a_wrong_password_refused() {
    let error = RedisStore::open("redis://127.0.0.1:1/").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
    let server = Redis::with(&["--save", "", "--requirepass", "secret"]);
    for password in ["", ":wrong@"] {
        let url = format!("redis://{password}127.0.0.1:{}/", server.port());
        let error = RedisStore::open(url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
        assert!(!words(&error).contains("wrong@"));
    }
    let url = format!("redis://:secret@127.0.0.1:{}/", server.port());
    grant(&RedisStore::open(url).await.unwrap(), &key("1"), OwnerToken::random()).await;
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_unavailable_until_it_is_one_again() {
    let server = Redis::start();
    let store = store(server.url(0)).await;
    grant(&store, &key("1"), OwnerToken::random()).await;
    server.ask(&["replicaof", "127.0.0.1", "1"]);
    let error = store.reserve(request(&key("2"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
    server.ask(&["replicaof", "no", "one"]);
    grant(&store, &key("2"), OwnerToken::random()).await;
}
