//! What the memory store promises beyond the contract, and a comparison with a model too simple to be wrong.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::similar_names,
    clippy::unchecked_time_subtraction,
    reason = "a test may fail loudly"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Lease, OwnerToken, Release, Reserve, Reserved, Resolution, Settled, State, Store, StoreErrorKind, Stored,
    TakeOver, Write,
};
use idempotent_runtime::stores::{Clock, MemoryStore};
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::{Error, Idempotency, Outcome, Unrecorded, with_outcome};

const HOUR: Duration = Duration::from_secs(3600);
const LEASE: Lease = Lease { duration: Duration::from_secs(30), unknown_ttl: HOUR };

fn key(n: usize) -> RecordKey {
    RecordKey::new("charge", format!("charge/{n}"))
}

fn request(key: &RecordKey, owner: OwnerToken) -> Reserve<'_> {
    let fingerprint = Fingerprint::from_parts(1, [7; 32]);
    Reserve { key, owner, fingerprint, lease: LEASE, take_over: TakeOver::Always, max_attempts: 3 }
}

fn result() -> Settled {
    Settled::Completed(Stored { version: 1, bytes: [0; 300].as_slice().into() })
}

async fn reserve(store: &MemoryStore, key: &RecordKey) -> OwnerToken {
    let owner = OwnerToken::random();
    let answer = store.reserve(request(key, owner)).await.unwrap();
    assert!(matches!(answer, Reserved::Granted(_)), "{answer:?}");
    owner
}

async fn complete(store: &MemoryStore, key: &RecordKey, keep: Duration) {
    let owner = reserve(store, key).await;
    assert_eq!(store.complete(key, owner, &result(), keep).await.unwrap(), Write::Applied);
}

fn with_clock(capacity: usize) -> (MemoryStore, ManualClock) {
    let clock = ManualClock::default();
    (MemoryStore::builder().capacity(capacity).clock(clock.clone()).build(), clock)
}

#[tokio::test]
async fn full_store_refuses_new_keys_and_serves_known_ones() {
    let (store, _clock) = with_clock(2);
    let owner = reserve(&store, &key(1)).await;
    complete(&store, &key(2), HOUR).await;

    let refused = store.reserve(request(&key(3), OwnerToken::random())).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Full);
    assert!(!refused.is_transient());

    assert_eq!(store.len(), 2);
    assert_eq!(store.complete(&key(1), owner, &result(), HOUR).await.unwrap(), Write::Applied);
    for n in [1, 2] {
        let held = store.reserve(request(&key(n), OwnerToken::random())).await.unwrap();
        assert!(matches!(held, Reserved::Held(record) if record.state == State::Settled(result())));
    }
}

#[tokio::test]
async fn full_store_makes_room_by_what_has_expired() {
    let (store, clock) = with_clock(100);
    for n in 0..100 {
        complete(&store, &key(n), if n == 42 { HOUR } else { HOUR * 9 }).await;
    }
    assert!(store.reserve(request(&key(100), OwnerToken::random())).await.is_err());
    clock.advance(HOUR);
    reserve(&store, &key(100)).await;
    assert!(store.reserve(request(&key(101), OwnerToken::random())).await.is_err());
    assert_eq!(store.len(), 100);
}

#[tokio::test]
async fn expired_record_makes_room_for_its_own_key() {
    let (store, clock) = with_clock(1);
    complete(&store, &key(1), HOUR).await;
    clock.advance(HOUR);
    reserve(&store, &key(1)).await;
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn released_record_makes_room() {
    let (store, _clock) = with_clock(1);
    let owner = reserve(&store, &key(1)).await;
    store.release(&key(1), owner, Release::Forget).await.unwrap();
    reserve(&store, &key(2)).await;
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn purge_looks_at_no_live_record() {
    let (store, clock) = with_clock(100_000);
    for n in 0..10_000 {
        complete(&store, &key(n), if n % 100 == 0 { HOUR } else { HOUR * 9 }).await;
    }
    assert_eq!(store.purge(usize::MAX).await.unwrap(), 0);
    assert_eq!(store.visited_by_purge(), 0);

    clock.advance(HOUR);
    assert_eq!(store.purge(30).await.unwrap(), 30);
    assert_eq!(store.purge(usize::MAX).await.unwrap(), 70);
    assert_eq!(store.visited_by_purge(), 100);
    assert_eq!(store.len(), 9_900);
}

#[tokio::test]
async fn reservations_sweep_by_the_way() {
    let (store, clock) = with_clock(100_000);
    for n in 0..5_000 {
        complete(&store, &key(n), HOUR).await;
    }
    clock.advance(HOUR);
    for n in 5_000..15_000 {
        complete(&store, &key(n), HOUR).await;
    }
    assert!(store.len() < 10_500, "{}", store.len());
}

#[tokio::test]
async fn fence_grows_though_the_clock_goes_back() {
    let (store, clock) = with_clock(10);
    let mut last = 0;
    for _ in 0..3 {
        let owner = OwnerToken::random();
        let Reserved::Granted(grant) = store.reserve(request(&key(1), owner)).await.unwrap() else {
            panic!()
        };
        assert!(grant.fence > last);
        last = grant.fence;
        store.release(&key(1), owner, Release::Forget).await.unwrap();
        clock.set_back(HOUR);
    }
}

#[tokio::test]
async fn waiters_leave_nothing_behind() {
    let (store, _clock) = with_clock(10);
    let owner = reserve(&store, &key(1)).await;
    let first = store.watch(&key(1)).await.unwrap().unwrap();
    let second = store.watch(&key(1)).await.unwrap().unwrap();
    let elsewhere = store.watch(&key(2)).await.unwrap().unwrap();
    assert_eq!(store.waiters(), 3);
    drop(second);
    drop(elsewhere);
    assert_eq!(store.waiters(), 1);
    store.complete(&key(1), owner, &result(), HOUR).await.unwrap();
    assert_eq!(store.waiters(), 0);
    first.await;
}

#[tokio::test]
async fn stranger_wakes_nobody() {
    let (store, _clock) = with_clock(10);
    reserve(&store, &key(1)).await;
    let watch = store.watch(&key(1)).await.unwrap().unwrap();
    let stranger = OwnerToken::random();
    store.complete(&key(1), stranger, &result(), HOUR).await.unwrap();
    store.release(&key(1), stranger, Release::Forget).await.unwrap();
    store.forget(&key(1), stranger).await.unwrap();
    assert_eq!(store.waiters(), 1);
    drop(watch);
}

#[test]
fn needs_no_runtime_and_crosses_threads() {
    fn block<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        loop {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            std::thread::yield_now();
        }
    }
    let store = MemoryStore::new();
    let owner = block(reserve(&store, &key(1)));
    let watch = block(store.watch(&key(1))).unwrap().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| block(watch));
        scope.spawn(|| block(store.complete(&key(1), owner, &result(), HOUR)).unwrap());
    });
    let granted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut granted = 0;
                    for n in 0..10_000 {
                        let answer = block(store.reserve(request(&key(100 + n), OwnerToken::random())));
                        granted += usize::from(matches!(answer, Ok(Reserved::Granted(_))));
                    }
                    granted
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(granted, 10_000);
}

/// One record of the model: everything that decides an answer, in plain words.
#[derive(Clone, Debug)]
struct Row {
    owner: OwnerToken,
    attempt: u32,
    fingerprint: Fingerprint,
    settled: Option<Settled>,
    effects: bool,
    lease_ends: Duration,
    expires: Duration,
}

/// The contract without steps, as a list of rows.
#[derive(Default)]
struct Model(BTreeMap<usize, Row>);

impl Model {
    fn reserve(&mut self, n: usize, request: &Reserve<'_>, now: Duration) -> String {
        let fresh = now + request.lease.duration;
        let silent = fresh + request.lease.unknown_ttl;
        let first = Row {
            owner: request.owner,
            attempt: 1,
            fingerprint: request.fingerprint,
            settled: None,
            effects: false,
            lease_ends: fresh,
            expires: silent,
        };
        let row = self.0.entry(n).or_insert(first);
        if row.settled.is_some() {
            return format!("held {:?}", row.settled);
        }
        if row.owner != request.owner {
            let over = row.lease_ends <= now && row.fingerprint == request.fingerprint;
            if !over || !request.take_over.allows(row.effects, &[]) {
                return "held None".into();
            }
            if row.attempt + 1 > request.max_attempts {
                row.owner = OwnerToken::NOBODY;
                row.settled = Some(Settled::Unknown);
                row.expires = now + request.lease.unknown_ttl;
                return format!("held {:?}", row.settled);
            }
            row.owner = request.owner;
            row.attempt += 1;
        }
        (row.lease_ends, row.expires) = (fresh, silent);
        format!("granted {}", row.attempt)
    }

    fn running(&mut self, n: usize, owner: OwnerToken) -> Option<&mut Row> {
        self.0.get_mut(&n).filter(|row| row.owner == owner && row.settled.is_none())
    }

    fn renew(&mut self, n: usize, owner: OwnerToken, effects: bool, now: Duration) -> String {
        let Some(row) = self.running(n, owner) else { return "Lost".into() };
        row.effects |= effects;
        (row.lease_ends, row.expires) = (now + LEASE.duration, now + LEASE.duration + LEASE.unknown_ttl);
        "Applied".into()
    }

    fn complete(&mut self, n: usize, owner: OwnerToken, keep: Duration, now: Duration) -> String {
        if self.0.get(&n).is_some_and(|row| row.owner == owner && row.settled.is_some()) {
            return "Applied".into();
        }
        let Some(row) = self.running(n, owner) else { return "Lost".into() };
        row.settled = Some(result());
        row.expires = now + keep;
        "Applied".into()
    }

    fn release(&mut self, n: usize, owner: OwnerToken, how: Release, now: Duration) -> String {
        if !self.0.contains_key(&n) {
            return "Applied".into();
        }
        let Some(row) = self.running(n, owner) else { return "Lost".into() };
        match how {
            Release::Forget => drop(self.0.remove(&n)),
            Release::Unused if row.attempt <= 1 => drop(self.0.remove(&n)),
            Release::Unused | Release::Abandon => {
                row.expires -= row.lease_ends.saturating_sub(now);
                row.lease_ends = row.lease_ends.min(now);
                if how == Release::Unused {
                    row.attempt -= 1;
                    row.owner = OwnerToken::NOBODY;
                }
            }
        }
        "Applied".into()
    }

    fn operate(&mut self, n: usize, seen: OwnerToken, done: Option<(OwnerToken, Duration)>) -> String {
        // The caller has made sure that the record waits for somebody, or is settled and to be forgotten.
        match (self.0.get_mut(&n).filter(|row| row.owner == seen), done) {
            (None, _) => "Differs".into(),
            (Some(row), Some((fresh, expires))) => {
                (row.owner, row.settled, row.expires) = (fresh, Some(result()), expires);
                "Changed".into()
            }
            (Some(_), None) => {
                self.0.remove(&n);
                "Changed".into()
            }
        }
    }
}

fn compared(answer: &idempotent_runtime::store::Compared) -> String {
    format!("{answer:?}").split('(').next().unwrap_or_default().to_owned()
}

/// A small generator, so that a failure can be run again by its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

#[tokio::test]
async fn random_histories_agree_with_the_model() {
    for seed in 0..300 {
        history(seed).await;
    }
}

async fn history(seed: u64) {
    let (store, clock) = with_clock(1_000);
    let mut model = Model::default();
    let mut dice = Dice(seed);
    let tokens: Vec<_> = (0..5).map(|_| OwnerToken::random()).collect();
    let spans = [0, 1, 10, 30, 31, 600, 3_600];
    for round in 0..200 {
        let now = clock.now();
        model.0.retain(|_, row| row.expires > now);
        let n = dice.below(3);
        let key = key(n);
        let owner = tokens[dice.below(tokens.len())];
        let span = Duration::from_secs(spans[dice.below(spans.len())]);
        let (what, seen, expected) = match dice.below(10) {
            0..3 => {
                let fingerprint = Fingerprint::from_parts(1, [u8::from(dice.below(8) == 0); 32]);
                let take_over =
                    [TakeOver::Always, TakeOver::BeforeEffects, TakeOver::BetweenSteps][dice.below(3)];
                let request = Reserve { fingerprint, take_over, ..request(&key, owner) };
                let seen = match store.reserve(request).await.unwrap() {
                    Reserved::Granted(grant) => format!("granted {}", grant.attempt),
                    Reserved::Held(record) => match record.state {
                        State::Running { .. } => "held None".into(),
                        State::Settled(settled) => format!("held {:?}", Some(settled)),
                    },
                };
                ("reserve", seen, model.reserve(n, &request, now))
            }
            3 => {
                let seen = store.renew(&key, owner, LEASE).await.unwrap();
                ("renew", format!("{seen:?}"), model.renew(n, owner, false, now))
            }
            4 => {
                let seen = store.begin_effects(&key, owner, LEASE).await.unwrap();
                ("begin_effects", format!("{seen:?}"), model.renew(n, owner, true, now))
            }
            5 => {
                let seen = store.complete(&key, owner, &result(), span).await.unwrap();
                ("complete", format!("{seen:?}"), model.complete(n, owner, span, now))
            }
            6 => {
                let how = match dice.below(3) {
                    0 => Release::Forget,
                    1 => Release::Unused,
                    _ => Release::Abandon,
                };
                let seen = store.release(&key, owner, how).await.unwrap();
                ("release", format!("{seen:?}"), model.release(n, owner, how, now))
            }
            7 => {
                let row = model.0.get(&n);
                let forget = dice.below(2) == 0;
                let fresh = OwnerToken::random();
                let may = row.is_some_and(|row| match &row.settled {
                    None => row.lease_ends <= now,
                    Some(settled) => forget || *settled == Settled::Unknown,
                });
                let expected = |model: &mut Model, done| {
                    if may { model.operate(n, owner, done) } else { "Differs".into() }
                };
                if forget {
                    let seen = compared(&store.forget(&key, owner).await.unwrap());
                    ("forget", seen, expected(&mut model, None))
                } else {
                    let resolution = Resolution::Done { settled: result(), keep: HOUR };
                    let seen = compared(&store.resolve(&key, owner, fresh, &resolution).await.unwrap());
                    ("resolve", seen, expected(&mut model, Some((fresh, now + HOUR))))
                }
            }
            8 => {
                store.purge(1).await.unwrap();
                ("purge", String::new(), String::new())
            }
            _ => {
                clock.advance(span);
                continue;
            }
        };
        assert_eq!(seen, expected, "seed {seed}, round {round}: {what} of record {n}");
        agree(&store, &model, now, &format!("seed {seed}, round {round}: after {what}")).await;
    }
}

async fn agree(store: &MemoryStore, model: &Model, now: Duration, when: &str) {
    for n in 0..3 {
        let record = store.load(&key(n)).await.unwrap();
        let row = model.0.get(&n).filter(|row| row.expires > now);
        assert_eq!(record.is_some(), row.is_some(), "{when}: record {n}");
        let (Some(record), Some(row)) = (record, row) else { continue };
        let state = match &row.settled {
            Some(settled) => State::Settled(settled.clone()),
            None => {
                State::Running { lease_left: row.lease_ends.saturating_sub(now), effects_begun: row.effects }
            }
        };
        assert_eq!(record.state, state, "{when}: record {n}");
        assert_eq!(
            (record.owner, record.attempt, record.fingerprint, record.expires_in),
            (row.owner, row.attempt, row.fingerprint, row.expires - now),
            "{when}: record {n}"
        );
    }
}

/// A clock that panics once it is told to.
#[derive(Clone, Debug, Default)]
struct Broken(Arc<AtomicBool>);

impl Clock for Broken {
    fn now(&self) -> Duration {
        assert!(!self.0.load(Ordering::Relaxed), "the clock is broken");
        Duration::from_secs(1_000_000)
    }
}

/// The body has run by then, so its value is its caller's, and what nobody could write down is not run again.
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_over_a_result_takes_it_from_nobody() {
    let clock = Broken::default();
    let idempotency = Idempotency::new(MemoryStore::builder().clock(clock.clone()).build());
    let charge = idempotency.operation("charge");
    let call = charge.key("order-1").run(|_| async {
        clock.0.store(true, Ordering::Relaxed);
        Ok::<_, Error>(4711)
    });
    let (receipt, outcome) = with_outcome(call).await;
    assert_eq!(receipt.unwrap(), 4711);
    assert_eq!(outcome, Some(Outcome::Unrecorded(Unrecorded::StoreFailed)));

    clock.0.store(false, Ordering::Relaxed);
    let again = charge.key("order-1").run(|_| async { Ok::<_, Error>(4712) }).await;
    assert!(matches!(again, Err(Error::InProgress { .. })), "{again:?}");
}

/// A panic of the store before the body is an answer that did not come: nothing runs, and nobody's task dies of it.
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_over_a_reservation_is_an_error() {
    let clock = Broken::default();
    let idempotency = Idempotency::new(MemoryStore::builder().clock(clock.clone()).build());
    let charge = idempotency.operation("charge");
    clock.0.store(true, Ordering::Relaxed);
    let refused = charge.key("order-1").run(|_| async { Ok::<_, Error>(1) }).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    clock.0.store(false, Ordering::Relaxed);
    assert_eq!(charge.key("order-1").run(|_| async { Ok::<_, Error>(2) }).await.unwrap(), 2);
}
