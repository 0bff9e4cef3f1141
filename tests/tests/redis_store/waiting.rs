//! Callers who wait for another one's result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::stores::RedisStore;
use idempotent_runtime::{Error, Idempotency};
use tokio::task::JoinSet;

use crate::proxy::Proxy;
use crate::support::*;

async fn charge(idempotency: &Idempotency, runs: &AtomicU32, takes: Duration) -> Result<u32, Error> {
    let call = idempotency.operation("charge").wait(Duration::from_secs(20)).key("o-1");
    call.run(async |_| {
        tokio::time::sleep(takes).await;
        Ok::<_, Error>(runs.fetch_add(1, Ordering::SeqCst) + 1)
    })
    .await
}

/// 64 callers on one key, through two handles; how long it took until all had the one result.
async fn many(handles: [Idempotency; 2], takes: Duration) -> Duration {
    let runs = Arc::new(AtomicU32::new(0));
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for n in 0..64 {
        let (idempotency, runs) = (handles[n % 2].clone(), Arc::clone(&runs));
        callers.spawn(async move { charge(&idempotency, &runs, takes).await });
    }
    for value in callers.join_all().await {
        assert_eq!(value.unwrap(), 1);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_of_two_processes_are_told_at_once() {
    let url = fresh_url();
    let mut handles = Vec::new();
    for _ in 0..2 {
        let store = RedisStore::builder(&url).prefix("told:").open().await.unwrap();
        handles.push(Idempotency::new(store));
    }
    let took = many(handles.try_into().unwrap(), Duration::from_millis(1200)).await;
    assert!(took < Duration::from_millis(1900), "a notification is faster than polling: {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_notification_only_delays() {
    // They listen through a go-between that swallows what they would hear.
    let proxy = Proxy::to(shared().port()).await;
    let url = fresh_url();
    let ear = redis::Client::open(proxy.url()).unwrap();
    let mut handles = Vec::new();
    for _ in 0..2 {
        let builder = RedisStore::builder(&url).prefix("lost:").notifications([ear.clone()]);
        handles.push(Idempotency::new(builder.open().await.unwrap()));
    }
    let silent = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        proxy.silence(true);
        std::future::pending::<()>().await;
    });
    let took = many(handles.try_into().unwrap(), Duration::from_secs(1)).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    silent.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_broken_ear_is_mended() {
    let proxy = Proxy::to(shared().port()).await;
    let ear = redis::Client::open(proxy.url()).unwrap();
    let builder = RedisStore::builder(fresh_url()).prefix("mended:").notifications([ear]);
    let idempotency = Idempotency::new(builder.open().await.unwrap());
    for round in 0..3_u32 {
        let key = format!("o-{round}");
        let call = |idempotency: &Idempotency| {
            let call = idempotency.operation("charge").wait(Duration::from_secs(20)).key(&key);
            call.run(async move |_| {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok::<_, Error>(round)
            })
        };
        let first = tokio::spawn(call(&idempotency));
        let second = tokio::spawn(call(&idempotency));
        tokio::time::sleep(Duration::from_millis(150)).await;
        proxy.cut();
        assert_eq!(first.await.unwrap().unwrap(), round);
        assert_eq!(second.await.unwrap().unwrap(), round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_notifications_they_poll() {
    let client = redis::Client::open(fresh_url()).unwrap();
    let mut handles = Vec::new();
    for _ in 0..2 {
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        let store = RedisStore::from_connection(connection).prefix("poll:").open().await.unwrap();
        handles.push(Idempotency::new(store));
    }
    let took = many(handles.try_into().unwrap(), Duration::from_millis(500)).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
}
