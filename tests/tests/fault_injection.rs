//! The store wrapper fails when it was told to, and only then.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Store, StoreErrorKind, TakeOver};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::conformance;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use tokio::time::{Instant, timeout};

const HOUR: Duration = Duration::from_secs(3600);

fn request(key: &RecordKey) -> Reserve<'_> {
    Reserve {
        key,
        owner: OwnerToken::random(),
        fingerprint: Fingerprint::from_parts(1, [0; 32]),
        lease: Lease { duration: HOUR, unknown_ttl: HOUR },
        take_over: TakeOver::Always,
        max_attempts: 3,
    }
}

fn key() -> RecordKey {
    RecordKey::new("charge", "charge/1")
}

#[tokio::test(start_paused = true)]
async fn without_faults_it_is_the_store_itself() {
    conformance::run(Faults::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn lost_request_is_not_done_and_lost_reply_is() {
    for (fault, is_there) in [(Fault::LoseRequest, false), (Fault::LoseReply, true)] {
        let store = Faults::new(MemoryStore::new()).nth(Operation::Reserve, 1, fault);
        let error = store.reserve(request(&key())).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.load(&key()).await.unwrap().is_some(), is_there);
        let history = store.history();
        let calls: Vec<_> = history.iter().map(|call| (call.operation, call.fault)).collect();
        assert_eq!(calls, [(Operation::Reserve, Some(fault)), (Operation::Load, None)]);
    }
}

#[tokio::test]
async fn refusal_is_given_until_it_heals() {
    let store =
        Faults::new(MemoryStore::new()).always(Operation::Reserve, Fault::Refuse(StoreErrorKind::Full));
    for _ in 0..2 {
        assert_eq!(store.reserve(request(&key())).await.unwrap_err().kind(), StoreErrorKind::Full);
    }
    store.heal();
    store.reserve(request(&key())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn delays_take_their_time() {
    for fault in [Fault::DelayRequest(HOUR), Fault::DelayReply(HOUR)] {
        let store = Faults::new(MemoryStore::new()).nth(Operation::Load, 1, fault);
        let begun = Instant::now();
        store.load(&key()).await.unwrap();
        assert_eq!(begun.elapsed(), HOUR);
    }
}

#[tokio::test(start_paused = true)]
async fn hook_can_hold_a_call_until_it_is_dropped() {
    let store = Faults::new(MemoryStore::new()).after(Operation::Reserve, |_| std::future::pending());
    assert!(timeout(HOUR, store.reserve(request(&key()))).await.is_err());
    assert!(store.load(&key()).await.unwrap().is_some());
    assert!(store.history().first().is_some_and(|call| call.answer.is_none()));
}

#[tokio::test]
async fn same_seed_brings_the_same_faults() {
    let mut seen = Vec::new();
    for seed in [1, 1, 2] {
        let store = Faults::new(MemoryStore::new()).one_of(4, seed, Fault::LoseRequest);
        for _ in 0..100 {
            let _ = store.load(&key()).await;
        }
        seen.push(store.history().iter().map(|call| call.fault.is_some()).collect::<Vec<_>>());
    }
    let [first, again, other] = seen.try_into().unwrap();
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!((10..50).contains(&first.iter().filter(|lost| **lost).count()));
}
