//! Machines whose clocks disagree.

use std::time::Duration;

use idempotent_runtime::store::{
    Lease, OwnerToken, Release, Reserve, Reserved, Resolution, State, Store, Write,
};
use idempotent_runtime::stores::DynamoDbStore;
use idempotent_runtime::testing::ManualClock;

use crate::support::*;

const SKEW: Duration = Duration::from_secs(5);

/// Two machines at one table, and their clocks.
async fn machines() -> [(DynamoDbStore, ManualClock); 2] {
    let table = table();
    let mut machines = Vec::new();
    for _ in 0..2 {
        let clock = ManualClock::default();
        let builder = DynamoDbStore::builder(direct()).table(&table).clock(clock.clone());
        machines.push((builder.open().await.unwrap(), clock));
    }
    machines.try_into().unwrap_or_else(|_| panic!("two machines"))
}

#[tokio::test]
async fn a_fast_clock_within_the_margin_steals_no_living_lease() {
    let [(one, clock), (fast, ahead)] = machines().await;
    ahead.advance(SKEW - Duration::from_millis(1));
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&one, &k, owner).await;
    // The last moment of the lease, renewed or not.
    clock.advance(LEASE.duration - Duration::from_micros(1));
    ahead.advance(LEASE.duration - Duration::from_micros(1));
    let record = held(&fast, &k).await;
    assert_eq!(record.owner, owner);
    assert!(!record.state.is_abandoned(), "{record:?}");
    assert_eq!(one.renew(&k, owner, LEASE).await.unwrap(), Write::Applied);
    assert_eq!(held(&fast, &k).await.owner, owner);
    // What is shown includes the margin.
    let State::Running { lease_left, .. } = one.load(&k).await.unwrap().unwrap().state else { panic!() };
    assert_eq!(lease_left, LEASE.duration + SKEW);
}

#[tokio::test]
async fn a_dead_attempt_is_taken_over_after_lease_and_margin() {
    let [(one, clock), _] = machines().await;
    let k = key("1");
    grant(&one, &k, OwnerToken::random()).await;
    clock.advance(LEASE.duration + SKEW - Duration::from_micros(1));
    held(&one, &k).await;
    clock.advance(Duration::from_micros(1));
    assert_eq!(grant(&one, &k, OwnerToken::random()).await.attempt, 2);
}

#[tokio::test]
async fn a_clock_beyond_the_margin_steals_the_lease_and_still_no_result() {
    let [(one, _), (fast, ahead)] = machines().await;
    ahead.advance(Duration::from_secs(3600));
    let (k, owner, thief) = (key("1"), OwnerToken::random(), OwnerToken::random());
    grant(&one, &k, owner).await;
    assert_eq!(grant(&fast, &k, thief).await.attempt, 2);
    assert_eq!(one.complete(&k, owner, &completed("stale"), KEEP).await.unwrap(), Write::Lost);
    assert_eq!(fast.complete(&k, thief, &completed("kept"), KEEP).await.unwrap(), Write::Applied);
    assert_eq!(one.load(&k).await.unwrap().unwrap().state, State::Settled(completed("kept")));
}

#[tokio::test]
async fn a_fast_clock_within_the_margin_forgets_no_result() {
    let [(one, _), (fast, ahead)] = machines().await;
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&one, &k, owner).await;
    one.complete(&k, owner, &completed("kept"), Duration::from_secs(1)).await.unwrap();
    ahead.advance(SKEW);
    assert_eq!(held(&fast, &k).await.state, State::Settled(completed("kept")));
    assert_eq!(fast.purge(10).await.unwrap(), 0);
    ahead.advance(Duration::from_secs(1));
    assert_eq!(fast.purge(10).await.unwrap(), 1);
}

#[tokio::test]
async fn a_lease_that_was_ended_is_over_by_every_clock() {
    let [(slow, _), (fast, ahead)] = machines().await;
    ahead.advance(Duration::from_secs(3600));
    let (released, ended) = (key("released"), key("ended"));
    let owner = OwnerToken::random();
    grant(&fast, &released, owner).await;
    fast.release(&released, owner, Release::Abandon).await.unwrap();
    let lease = Lease { duration: Duration::ZERO, ..LEASE };
    let reserve = Reserve { lease, ..request(&ended, owner) };
    assert!(matches!(fast.reserve(reserve).await.unwrap(), Reserved::Granted(_)));
    for k in [released, ended] {
        assert!(slow.load(&k).await.unwrap().unwrap().state.is_abandoned());
        assert_eq!(grant(&slow, &k, OwnerToken::random()).await.attempt, 2);
    }
}

#[tokio::test]
async fn fences_grow_when_the_clock_does_not() {
    let [(slow, _), (fast, ahead)] = machines().await;
    ahead.advance(Duration::from_secs(3600));
    let k = key("1");
    let mut last = 0;
    for store in [&fast, &slow, &fast, &slow, &slow] {
        let owner = OwnerToken::random();
        let fence = grant(store, &k, owner).await.fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        store.release(&k, owner, Release::Abandon).await.unwrap();
    }
    // Across generations as well, while the item is there.
    let (k, owner) = (key("2"), OwnerToken::random());
    let lease = Lease { duration: Duration::ZERO, unknown_ttl: Duration::ZERO };
    let mut last = 0;
    for _ in 0..3 {
        let Reserved::Granted(grant) = fast.reserve(Reserve { lease, ..request(&k, owner) }).await.unwrap()
        else {
            panic!("held")
        };
        assert!(grant.fence > last);
        last = grant.fence;
    }
}

#[tokio::test]
async fn the_longest_spans_fit() {
    let store = builder().clock_skew(Duration::MAX).open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    let lease = Lease { duration: Duration::MAX, unknown_ttl: Duration::MAX };
    assert!(matches!(
        store.reserve(Reserve { lease, ..request(&k, owner) }).await.unwrap(),
        Reserved::Granted(_)
    ));
    store.release(&k, owner, Release::Abandon).await.unwrap();
    assert!(store.load(&k).await.unwrap().unwrap().expires_in > Duration::from_secs(1 << 32));
    let resolution = Resolution::Done { settled: completed("found"), keep: Duration::MAX };
    store.resolve(&k, owner, OwnerToken::random(), &resolution).await.unwrap();
    assert!(store.load(&k).await.unwrap().is_some());
}
