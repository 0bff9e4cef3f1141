//! The locks, counters and waiters of the memory store, in some thousand interleavings of threads each. A failure names the
//! schedule that led to it.
//!
//! ```sh
//! RUSTFLAGS='--cfg shuttle' cargo test -p interleavings --target-dir target/shuttle
//! ```

#![cfg(shuttle)]

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Grant, Lease, OwnerToken, Release, Reserve, Reserved, Settled, State, Store, Stored, TakeOver, Write,
};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;
use shuttle::future::block_on;
use shuttle::{check_pct, check_random, thread};

const LEASE: Lease = Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
const KEEP: Duration = Duration::from_secs(60);
const TIMES: usize = 1_000;

/// Tries interleavings at random, and those that few switches between threads lead to.
fn check(test: fn()) {
    check_random(test, TIMES);
    check_pct(test, TIMES, 3);
}

/// Whether the checker finds an interleaving in which `test` fails.
fn is_found(test: fn()) -> bool {
    std::panic::catch_unwind(|| check(test)).is_err()
}

fn key(name: &str) -> RecordKey {
    RecordKey::new("charge", format!("test/charge/{name}"))
}

fn token(n: u8) -> OwnerToken {
    OwnerToken::from_bytes([n; 16])
}

fn completed(n: u8) -> Settled {
    Settled::Completed(Stored { version: 1, bytes: Arc::from([n]) })
}

fn store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::default();
    (MemoryStore::builder().clock(clock.clone()).build(), clock)
}

async fn reserve(store: &MemoryStore, key: &RecordKey, n: u8) -> Option<Grant> {
    let fingerprint = Fingerprint::from_parts(1, [7; 32]);
    let (owner, take_over) = (token(n), TakeOver::Always);
    let request = Reserve { key, owner, fingerprint, lease: LEASE, take_over, max_attempts: 10 };
    match store.reserve(request).await.unwrap() {
        Reserved::Granted(grant) => Some(grant),
        Reserved::Held(_) => None,
    }
}

/// Runs `work` in threads 1, 2, …, and gives what each of them gave.
fn threads<T: Send + 'static>(count: u8, work: impl Fn(u8) -> T + Clone + Send + 'static) -> Vec<T> {
    let start = |n| {
        let work = work.clone();
        thread::spawn(move || work(n))
    };
    let started: Vec<_> = (1..=count).map(start).collect();
    started.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn one_of_several_is_granted_a_new_key() {
    check(|| {
        let (store, _) = store();
        let granted = threads(3, move |n| block_on(reserve(&store, &key("1"), n)));
        assert_eq!(granted.iter().flatten().count(), 1, "{granted:?}");
    });
}

#[test]
fn one_of_several_takes_over_and_the_one_before_changes_nothing_more() {
    check(|| {
        let (store, clock) = store();
        let first = block_on(reserve(&store, &key("1"), 9)).unwrap();
        clock.advance(LEASE.duration);
        let all = threads(3, {
            let store = store.clone();
            move |n| {
                block_on(async {
                    let key = key("1");
                    if n == 3 {
                        // The one before wakes up.
                        return (None, store.complete(&key, token(9), &completed(9), KEEP).await.unwrap());
                    }
                    let grant = reserve(&store, &key, n).await;
                    (grant, store.complete(&key, token(n), &completed(n), KEEP).await.unwrap())
                })
            }
        });
        let applied: Vec<_> = (0..).zip(&all).filter(|(_, (_, write))| *write == Write::Applied).collect();
        assert_eq!(applied.len(), 1, "one result: {all:?}");
        let by = [1, 2, 9][applied[0].0];
        let record = block_on(store.load(&key("1"))).unwrap().unwrap();
        assert_eq!(record.state, State::Settled(completed(by)));
        for grant in all.iter().filter_map(|(grant, _)| grant.as_ref()) {
            assert!(grant.fence > first.fence && grant.attempt == 2);
        }
    });
}

/// What a caller does that waits for another one's result.
async fn wait(store: &MemoryStore, key: &RecordKey) {
    loop {
        let woken = store.watch(key).await.unwrap().unwrap();
        match store.load(key).await.unwrap() {
            Some(record) if matches!(record.state, State::Running { .. }) => woken.await,
            _ => return,
        }
    }
}

#[test]
fn no_waiter_sleeps_through_a_change() {
    // A waiter that is not woken is a deadlock to the scheduler.
    check(|| {
        let (store, _) = store();
        block_on(reserve(&store, &key("1"), 1)).unwrap();
        threads(3, {
            let store = store.clone();
            move |n| {
                block_on(async {
                    match n {
                        1 => drop(store.complete(&key("1"), token(1), &completed(1), KEEP).await.unwrap()),
                        _ => wait(&store, &key("1")).await,
                    }
                });
            }
        });
        assert_eq!(store.waiters(), 0);
    });
}

#[test]
fn waiters_that_go_away_or_are_woken_leave_nothing_behind() {
    check(|| {
        let (store, _) = store();
        block_on(reserve(&store, &key("1"), 1)).unwrap();
        threads(3, {
            let store = store.clone();
            move |n| {
                block_on(async {
                    match n {
                        1 => drop(store.release(&key("1"), token(1), Release::Forget).await.unwrap()),
                        2 => drop(store.watch(&key("1")).await.unwrap()),
                        _ => wait(&store, &key("1")).await,
                    }
                });
            }
        });
        assert_eq!((store.waiters(), store.len()), (0, 0));
    });
}

fn there_are_never_more_than_allowed() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).capacity(2).build();
    block_on(async {
        reserve(&store, &key("old"), 9).await.unwrap();
        store.complete(&key("old"), token(9), &completed(9), KEEP).await.unwrap();
    });
    // One place is free, and one is when the expired record has been taken out.
    clock.advance(KEEP);
    let granted = threads(3, {
        let store = store.clone();
        move |n| {
            let fingerprint = Fingerprint::from_parts(1, [7; 32]);
            let (key, owner, take_over) = (key(&n.to_string()), token(n), TakeOver::Always);
            let request =
                Reserve { key: &key, owner, fingerprint, lease: LEASE, take_over, max_attempts: 10 };
            block_on(store.reserve(request)).is_ok()
        }
    });
    let granted = granted.into_iter().filter(|granted| *granted).count();
    assert!(granted <= 2 && store.len() == granted, "{granted} records, counted as {}", store.len());
    let held = (1..=3).filter(|n| block_on(store.load(&key(&n.to_string()))).unwrap().is_some()).count();
    assert_eq!(held, granted);
}

#[test]
fn the_count_of_records_is_right_whoever_comes_and_goes() {
    check(there_are_never_more_than_allowed);
    // A counter that is read and written in two steps is found.
    MemoryStore::tear_counters(true);
    let found = is_found(there_are_never_more_than_allowed);
    MemoryStore::tear_counters(false);
    assert!(found);
}

#[test]
fn a_waiter_that_looks_before_it_watches_is_found() {
    assert!(is_found(|| {
        let (store, _) = store();
        block_on(reserve(&store, &key("1"), 1)).unwrap();
        threads(2, move |n| {
            block_on(async {
                if n == 1 {
                    store.complete(&key("1"), token(1), &completed(1), KEEP).await.unwrap();
                    return;
                }
                let record = store.load(&key("1")).await.unwrap().unwrap();
                let woken = store.watch(&key("1")).await.unwrap().unwrap();
                if matches!(record.state, State::Running { .. }) {
                    woken.await;
                }
            });
        });
    }));
}
