//! Waiting for another call's result, also for one of another process.

use std::time::{Duration, Instant};

use idempotent_runtime::store::{OwnerToken, Store};
use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Error, Idempotency};
use tests::Runs;
use tests::servers::postgres::shared;

use crate::support::*;

async fn woken(watcher: &PostgresStore, owner_store: &PostgresStore, name: &str) -> Duration {
    let (k, owner) = (key(name), OwnerToken::random());
    grant(owner_store, &k, owner).await;
    let watch = watcher.watch(&k).await.unwrap().expect("the store notifies");
    let begun = Instant::now();
    owner_store.complete(&k, owner, &completed("x"), KEEP).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), watch).await.expect("the waiter is woken");
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_store_on_the_table_is_heard_and_a_cut_listener_hears_again() {
    let url = shared().database();
    // Two stores stand for two processes: they share nothing but the server.
    let one = PostgresStore::builder(pool(&url)).open().await.unwrap();
    let two = PostgresStore::builder(pool(&url)).batch(8).open().await.unwrap();
    woken(&one, &two, "1").await;
    woken(&two, &one, "2").await;
    woken(&one, &one, "3").await;

    shared().psql(
        &url,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE \
         '%LISTEN%'",
    );
    let begun = Instant::now();
    loop {
        let (k, owner) = (key(&OwnerToken::random().to_string()), OwnerToken::random());
        grant(&two, &k, owner).await;
        if let Some(watch) = one.watch(&k).await.unwrap() {
            two.complete(&k, owner, &completed("x"), KEEP).await.unwrap();
            if tokio::time::timeout(Duration::from_secs(1), watch).await.is_ok() {
                break;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the listener never hears again");
    }
}

#[tokio::test]
async fn without_notifications_there_is_no_watch() {
    let store = PostgresStore::builder(pool(&shared().database())).notifications(false).open().await.unwrap();
    assert!(store.watch(&key("1")).await.unwrap().is_none());
}

/// 64 callers, half of them at each of two handles: one body, and everybody gets its result.
async fn one_body_for_all(one: PostgresStore, two: PostgresStore) {
    let handle = |store| Idempotency::builder().store(store).wait(Duration::from_secs(20)).build().unwrap();
    let handles = [handle(one), handle(two)];
    let runs = Runs::default();
    let callers: Vec<_> = (0..64)
        .map(|n| {
            let (idempotency, runs) = (handles[n % 2].clone(), runs.clone());
            tokio::spawn(async move {
                let call = idempotency.operation("charge").key("hot").fingerprint(&1);
                call.run(|_| async {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    Ok::<_, Error>(runs.count())
                })
                .await
            })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap(), 1);
    }
    assert_eq!(runs.total(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_wait_for_one_body() {
    for (batch, notifications) in [(1, true), (64, true), (1, false)] {
        let url = shared().database();
        let builder = || PostgresStore::builder(pool(&url)).batch(batch).notifications(notifications);
        one_body_for_all(builder().open().await.unwrap(), builder().open().await.unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_notification_only_delays() {
    let url = shared().database();
    // Nobody listens where the other one speaks.
    let deaf = PostgresStore::builder(pool(&url)).channel("elsewhere").open().await.unwrap();
    one_body_for_all(deaf, PostgresStore::builder(pool(&url)).open().await.unwrap()).await;
}
