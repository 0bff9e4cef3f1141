//! Removing what has expired, beside what has not; and what a replay notices of it.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use idempotent_runtime::Idempotency;
use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::{OperationName, RecordKey};
use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Settled, Store, Stored, TakeOver};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;
use tokio::runtime::Runtime;

use support::shop::{Order, Receipt, charge};
use support::{Ratio, count, median, nanoseconds, ratio};

#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod support;

const EXPIRED: u64 = 10_000;
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
const SOON: Duration = Duration::from_secs(60);
const LATE: Duration = Duration::from_secs(24 * 60 * 60);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// A store whose time is set by hand.
struct Shelf {
    runtime: Runtime,
    store: MemoryStore,
    clock: ManualClock,
    next: u64,
}

impl Shelf {
    fn with(live: u64) -> Self {
        let clock = ManualClock::at(LATE * 365 * 50);
        let store = MemoryStore::builder().capacity(2_000_000).clock(clock.clone()).build();
        let mut shelf = Self { runtime: runtime(), store, clock, next: 0 };
        shelf.add(live, LATE * 365);
        shelf
    }

    /// Adds settled records that are kept for so long.
    fn add(&mut self, records: u64, keep: Duration) {
        let settled = |number: u64| {
            let bytes = serde_json::to_vec(&Receipt::new(&Order::new(number))).unwrap().into();
            Settled::Completed(Stored { version: 1, bytes })
        };
        let numbers = self.next..self.next + records;
        self.next += records;
        self.runtime.block_on(async {
            for number in numbers {
                let key = RecordKey::new(
                    OperationName::from_static("shop::charge"),
                    format!("benchmark-shop/shop::charge/purged-{number:020}"),
                );
                let owner = OwnerToken::random();
                let request = Reserve {
                    key: &key,
                    owner,
                    fingerprint: Fingerprint::from_parts(1, [7; 32]),
                    lease: Lease { duration: SOON, unknown_ttl: LATE },
                    take_over: TakeOver::Always,
                    max_attempts: 5,
                };
                self.store.reserve(request).await.unwrap();
                self.store.complete(&key, owner, &settled(number), keep).await.unwrap();
            }
        });
    }

    /// Lets so many records expire, and takes them out: no other is looked at.
    fn purge(&mut self) -> Duration {
        self.add(EXPIRED, SOON);
        self.clock.advance(SOON * 2);
        let before = self.store.visited_by_purge();
        let started = Instant::now();
        let purged = self.runtime.block_on(self.store.purge(usize::MAX)).unwrap();
        let took = started.elapsed();
        let visited = self.store.visited_by_purge() - before;
        assert_eq!((purged, visited), (EXPIRED.try_into().unwrap(), purged));
        took
    }
}

/// The longest of the replays that are made on another thread while a purge is at work, and their median.
fn stall(shelf: &mut Shelf) -> (Duration, Duration) {
    let idempotency = Idempotency::new(shelf.store.clone());
    let orders: Vec<Order> = (0..256).map(Order::new).collect();
    for order in &orders {
        shelf.runtime.block_on(charge(&idempotency, order, Some(Receipt::new(order)))).unwrap();
    }
    shelf.add(EXPIRED, SOON);
    shelf.clock.advance(SOON * 2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let replays = scope.spawn(|| {
            runtime().block_on(async {
                let mut spans = Vec::new();
                for order in orders.iter().cycle() {
                    let started = Instant::now();
                    charge(&idempotency, order, None).await.unwrap();
                    spans.push(started.elapsed());
                    if done.load(Ordering::Acquire) {
                        break;
                    }
                }
                spans.sort();
                spans
            })
        });
        // The other thread is at work before the purge begins.
        std::thread::sleep(Duration::from_millis(2));
        shelf.runtime.block_on(shelf.store.purge(usize::MAX)).unwrap();
        done.store(true, Ordering::Release);
        let spans = replays.join().unwrap();
        let longest = spans.iter().max().copied().unwrap();
        (longest, spans.get(spans.len() / 2).copied().unwrap())
    })
}

fn purge(c: &mut Criterion<Ratio>) {
    let (mut few, mut many) = (Shelf::with(FEW), Shelf::with(MANY));
    let mut each = (Vec::new(), Vec::new());
    ratio(c, "purge among 1,000,000 live records over purge among 1,000", || {
        let spans = (many.purge(), few.purge());
        each.0.push(spans.0.as_secs_f64() * 1e9);
        each.1.push(spans.1.as_secs_f64() * 1e9);
        spans.0.as_secs_f64() / spans.1.as_secs_f64()
    });
    println!(
        "{EXPIRED} expired ones, no live one visited; among {MANY} {}, among {FEW} {}\n",
        nanoseconds(median(each.0)),
        nanoseconds(median(each.1))
    );

    let stalls: Vec<(Duration, Duration)> = (0..50).map(|_| stall(&mut many)).collect();
    let of = |span: fn(&(Duration, Duration)) -> Duration| {
        let spans: Vec<f64> = stalls.iter().map(|stall| span(stall).as_secs_f64() * 1e9).collect();
        let longest = spans.iter().copied().fold(0.0, f64::max);
        (nanoseconds(median(spans)), nanoseconds(longest))
    };
    let (longest, replay) = (of(|stall| stall.0), of(|stall| stall.1));
    println!(
        "the longest replay beside a purge, in {} runs: median {}, worst {}; a replay in the middle takes {}",
        count(50),
        longest.0,
        longest.1,
        replay.0
    );
}

criterion_group! {
    name = benches;
    config = support::criterion(20, Duration::from_secs(5));
    targets = purge
}
criterion_main!(benches);
