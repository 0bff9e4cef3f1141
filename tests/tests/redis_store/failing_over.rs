//! A primary that dies, and a replica that takes its place.

use std::time::Duration;

use idempotent_runtime::store::{OwnerToken, Store, StoreErrorKind};
use idempotent_runtime::stores::RedisStore;
use idempotent_runtime::{Error, Idempotency};
use tests::servers::redis::{Redis, Sentinels};

use crate::failures::Traffic;
use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_go_on_with_the_new_primary() {
    let sentinels = Sentinels::start();
    let builder = RedisStore::builder(sentinels.url())
        .response_timeout(Duration::from_millis(400))
        .wait_replicas(1, Duration::from_millis(300));
    let store = builder.open().await.unwrap();
    let traffic = Traffic::on(store.clone());
    assert_eq!(traffic.call("before").await.unwrap(), 7);
    sentinels.primary.signal("KILL");
    tests::servers::redis::wait_until("the replica is the primary", || {
        sentinels.replica.ask(&["role"]).starts_with("master")
    });
    // With no replica left, nothing new may run, and what is known is still told, as soon as the sentinels agree.
    let mut tries = 0;
    while traffic.call("before").await.is_err() {
        tries += 1;
        assert!(tries < 30, "the known result is not told");
    }
    assert_eq!(traffic.call("after").await.unwrap_err().code(), "store-unavailable");
    traffic.nothing_ran_twice();

    let plain = RedisStore::builder(sentinels.url()).open().await.unwrap();
    let idempotency = Idempotency::new(plain);
    let call = idempotency.operation("charge").key("without replicas");
    assert_eq!(call.run(async |_| Ok::<_, Error>(1)).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_follows_the_primary_by_itself() {
    let sentinels = Sentinels::start();
    let builder = RedisStore::builder(sentinels.url()).response_timeout(Duration::from_millis(400));
    let traffic = Traffic::on(builder.open().await.unwrap());
    assert_eq!(traffic.call("before").await.unwrap(), 7);
    traffic.survives(async { sentinels.primary.signal("KILL") }).await;
}

#[tokio::test]
async fn without_enough_replicas_nothing_runs() {
    let server = Redis::start();
    let builder = RedisStore::builder(server.url(0)).wait_replicas(1, Duration::from_millis(50));
    let store = builder.open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    let error = store.reserve(request(&k, owner)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(words(&error).contains("only 0 of 1 replicas"), "{}", words(&error));

    let idempotency = Idempotency::builder()
        .store(store.clone())
        .store_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let value: Result<(), Error> = call.run(async |_| panic!("the body runs")).await;
    assert_eq!(value.unwrap_err().code(), "store-unavailable");
    // The reservation is given back.
    idempotency.shutdown().await;
    let list = store.list(&idempotent_runtime::store::ListQuery::default()).await.unwrap();
    let left: Vec<_> = list.records.iter().map(|record| record.key.as_str()).collect();
    assert_eq!(left, ["test/charge/1"]);
}
