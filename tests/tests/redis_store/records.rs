//! What lies in Redis, and what the store makes of what others put there.

use std::time::Duration;

use idempotent_runtime::store::{
    ListQuery, OwnerToken, Reserve, Reserved, State, Store, StoreErrorKind, TakeOver, Write,
};
use idempotent_runtime::stores::RedisStore;
use tests::servers::redis::Redis;

use crate::support::*;

#[tokio::test]
async fn every_record_expires_by_itself() {
    let server = Redis::start();
    let store = RedisStore::open(server.url(0)).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let left = |server: &Redis| server.ask(&["pttl", "idempotent:test/charge/1"]).parse::<u64>().unwrap();
    assert!((3_620_000..=3_630_000).contains(&left(&server)), "lease and unknown_ttl");
    store.complete(&k, owner, &completed("x"), Duration::from_secs(60)).await.unwrap();
    assert!((50_000..=60_000).contains(&left(&server)));
    assert_eq!(server.ask(&["type", "idempotent:test/charge/1"]), "string");
    assert_eq!(server.ask(&["dbsize"]), "1");
    store.forget(&k, owner).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.ask(&["keys", "*"]), "", "nothing is left but for a moment");
    assert_eq!(store.purge(100).await.unwrap(), 0);
}

#[tokio::test]
async fn fences_grow_when_a_key_is_released_and_taken_at_once() {
    let store = fresh().await;
    let (k, mut last) = (key("1"), 0);
    for n in 0..300 {
        let owner = OwnerToken::random();
        let fence = grant(&store, &k, owner).await.fence;
        assert!(fence > last, "{n}: {fence} after {last}");
        last = fence;
        store.release(&k, owner, idempotent_runtime::store::Release::Forget).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_no_record_is_left_alone() {
    let server = Redis::start();
    let store = RedisStore::open(server.url(0)).await.unwrap();
    let in_redis = "idempotent:test/charge/1";
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let newer = format!("2{}", "r".repeat(200));
    let broken = format!("1r00{}", "x".repeat(200));
    for content in ["", "short", &newer, &broken] {
        server.ask(&["set", in_redis, content]);
        unreadable(&store, owner).await;
        assert_eq!(server.ask(&["get", in_redis]), content);
        assert_eq!(store.list(&ListQuery::default()).await.unwrap().records, vec![]);
    }
    server.ask(&["del", in_redis]);
    server.ask(&["hset", in_redis, "field", "value"]);
    unreadable(&store, owner).await;
    assert_eq!(server.ask(&["hget", in_redis, "field"]), "value");
}

/// A first attempt's record says only together with its expiry when it was granted.
#[tokio::test]
async fn a_record_that_has_lost_its_expiry_is_left_alone_and_hides_no_other() {
    let server = Redis::start();
    let store = RedisStore::open(server.url(0)).await.unwrap();
    let owner = OwnerToken::random();
    grant(&store, &key("1"), owner).await;
    grant(&store, &key("2"), owner).await;
    server.ask(&["persist", "idempotent:test/charge/1"]);
    for error in [
        store.reserve(request(&key("1"), owner)).await.map(drop).unwrap_err(),
        store.reserve(request(&key("1"), OwnerToken::random())).await.map(drop).unwrap_err(),
        store.load(&key("1")).await.map(drop).unwrap_err(),
        store.forget(&key("1"), owner).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{}", words(&error));
    }
    let page = store.list(&ListQuery::default()).await.unwrap();
    assert_eq!(page.records.iter().map(|record| &record.key).collect::<Vec<_>>(), [&key("2")]);
    assert_eq!(page.next, None);
    // Its owner has it all the same, and a result that can be stored is.
    assert_eq!(store.complete(&key("1"), owner, &completed("x"), KEEP).await.unwrap(), Write::Applied);
    let record = store.load(&key("1")).await.unwrap().unwrap();
    assert_eq!(record.state, State::Settled(completed("x")));
}

async fn unreadable(store: &RedisStore, owner: OwnerToken) {
    let k = key("1");
    let errors = [
        store.reserve(request(&k, owner)).await.unwrap_err(),
        store.reserve(request(&k, OwnerToken::random())).await.unwrap_err(),
        store.renew(&k, owner, LEASE).await.unwrap_err(),
        store.complete(&k, owner, &completed("x"), KEEP).await.unwrap_err(),
        store.load(&k).await.unwrap_err(),
        store.forget(&k, owner).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{}", words(&error));
    }
}

#[tokio::test]
async fn a_record_that_is_flushed_away_is_lost_to_its_owner() {
    let server = Redis::start();
    let store = RedisStore::open(server.url(0)).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    server.ask(&["flushall"]);
    assert_eq!(store.renew(&k, owner, LEASE).await.unwrap(), Write::Lost);
    assert_eq!(store.complete(&k, owner, &completed("x"), KEEP).await.unwrap(), Write::Lost);
    assert_eq!(store.load(&k).await.unwrap(), None);
}

#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let server = Redis::start();
    let store = RedisStore::open(server.url(0)).await.unwrap();
    for round in 0..3 {
        let (k, owner) = (key(&round.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        assert_eq!(store.renew(&k, owner, LEASE).await.unwrap(), Write::Applied);
        server.ask(&["script", "flush"]);
        assert_eq!(store.complete(&k, owner, &completed("x"), KEEP).await.unwrap(), Write::Applied);
        assert_eq!(held(&store, &k).await.state, State::Settled(completed("x")));
    }
}

#[tokio::test]
async fn a_full_server_takes_no_new_record_and_shows_the_others() {
    let server = Redis::with(&["--save", "", "--maxmemory", "8mb", "--maxmemory-policy", "noeviction"]);
    let store = RedisStore::open(server.url(0)).await.unwrap();
    let (settled, running, owner) = (key("settled"), key("running"), OwnerToken::random());
    grant(&store, &settled, owner).await;
    store.complete(&settled, owner, &completed("kept"), KEEP).await.unwrap();
    grant(&store, &running, owner).await;
    server.ask(&["config", "set", "maxmemory", "1"]);

    let error = store.reserve(request(&key("new"), owner)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full, "{}", words(&error));
    assert_eq!(held(&store, &settled).await.state, State::Settled(completed("kept")));
    assert!(matches!(held(&store, &running).await.state, State::Running { .. }));
    let error = store.complete(&running, owner, &completed("late"), KEEP).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));

    server.ask(&["config", "set", "maxmemory", "0"]);
    assert_eq!(store.complete(&running, owner, &completed("late"), KEEP).await.unwrap(), Write::Applied);
    grant(&store, &key("new"), owner).await;
}

#[tokio::test]
async fn a_short_lease_ends_when_it_says() {
    let store = fresh().await;
    let lease = idempotent_runtime::store::Lease { duration: Duration::from_millis(300), ..LEASE };
    let (k, a, b) = (key("1"), OwnerToken::random(), OwnerToken::random());
    let ask = |owner| Reserve { lease, take_over: TakeOver::Always, ..request(&k, owner) };
    let began = std::time::Instant::now();
    assert!(matches!(store.reserve(ask(a)).await.unwrap(), Reserved::Granted(_)));
    loop {
        match store.reserve(ask(b)).await.unwrap() {
            Reserved::Held(record) => {
                let State::Running { lease_left, .. } = record.state else { panic!("{record:?}") };
                assert!(lease_left <= Duration::from_millis(300) && !lease_left.is_zero());
            }
            Reserved::Granted(grant) => {
                assert_eq!(grant.attempt, 2);
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(295) && took < Duration::from_millis(450), "{took:?}");
}
