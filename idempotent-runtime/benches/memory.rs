//! What an annotated call costs on the memory store, against its parts measured alone.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use idempotent_runtime::Idempotency;
use idempotent_runtime::fingerprint::{Fingerprint, Fingerprinter};
use idempotent_runtime::key::{KeyParts, OperationName, RecordKey};
use idempotent_runtime::store::{
    Lease, OwnerToken, Reserve, Reserved, Settled, Store, Stored, TakeOver, Write,
};
use idempotent_runtime::stores::MemoryStore;
use tokio::runtime::Runtime;

use support::shop::{Order, Receipt, charge};
use support::{Ratio, compare, count, ratio};

mod support;

const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
const OPERATION: OperationName = OperationName::from_static("shop::charge");

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn fingerprint(order: &Order) -> Fingerprint {
    let mut arguments = Fingerprinter::new();
    arguments.argument("order", order);
    arguments.finish().unwrap()
}

fn key(order: &Order) -> RecordKey {
    let mut parts = KeyParts::new();
    parts.part("order.id", &order.id);
    parts.into_key("idempotent", &OPERATION, None).unwrap()
}

/// What the two store operations of a call are asked, made beforehand.
struct Asked {
    key: RecordKey,
    owner: OwnerToken,
    fingerprint: Fingerprint,
    settled: Settled,
}

impl Asked {
    fn new(order: &Order) -> Self {
        let bytes = serde_json::to_vec(&Receipt::new(order)).unwrap().into();
        Self {
            key: key(order),
            owner: OwnerToken::random(),
            fingerprint: fingerprint(order),
            settled: Settled::Completed(Stored { version: 1, bytes }),
        }
    }

    async fn reserve(&self, store: &dyn Store, owner: OwnerToken) -> Reserved {
        let lease = Lease { duration: Duration::from_secs(30), unknown_ttl: 30 * KEEP };
        let request = Reserve {
            key: &self.key,
            owner,
            fingerprint: self.fingerprint,
            lease,
            take_over: TakeOver::BetweenSteps,
            max_attempts: 5,
        };
        store.reserve(request).await.unwrap()
    }

    async fn complete(&self, store: &dyn Store) -> Write {
        store.complete(&self.key, self.owner, &self.settled, KEEP).await.unwrap()
    }
}

fn orders(operations: u64) -> Vec<Order> {
    (0..operations).map(Order::new).collect()
}

/// Calls with keys that are new: each turn has a store of its own, so that it finds it as empty as the parts do.
fn first_calls(runtime: &Runtime, operations: u64) -> Duration {
    let orders = orders(operations);
    let receipts: Vec<Receipt> = orders.iter().map(Receipt::new).collect();
    let idempotency = Idempotency::new(MemoryStore::new());
    runtime.block_on(async {
        let mut answers = Vec::with_capacity(orders.len());
        let started = Instant::now();
        for (order, receipt) in orders.iter().zip(receipts) {
            answers.push(charge(&idempotency, order, Some(receipt)).await);
        }
        let took = started.elapsed();
        assert!(answers.iter().all(Result::is_ok));
        took
    })
}

fn replays(runtime: &Runtime, operations: u64) -> Duration {
    let orders = orders(operations);
    let idempotency = Idempotency::new(MemoryStore::new());
    runtime.block_on(async {
        for order in &orders {
            charge(&idempotency, order, Some(Receipt::new(order))).await.unwrap();
        }
        let mut answers = Vec::with_capacity(orders.len());
        let started = Instant::now();
        for order in &orders {
            answers.push(charge(&idempotency, order, None).await);
        }
        let took = started.elapsed();
        assert!(
            answers.iter().zip(&orders).all(|(answer, order)| answer.as_ref().unwrap().order == order.id)
        );
        took
    })
}

fn fingerprints(operations: u64) -> Duration {
    let orders = orders(operations);
    timed(|| orders.iter().for_each(|order| _ = black_box(fingerprint(black_box(order)))))
}

fn keys(operations: u64) -> Duration {
    let orders = orders(operations);
    timed(|| orders.iter().for_each(|order| drop(black_box(key(black_box(order))))))
}

fn encode(operations: u64) -> Duration {
    let receipts: Vec<Receipt> = orders(operations).iter().map(Receipt::new).collect();
    timed(|| receipts.iter().for_each(|receipt| drop(black_box(serde_json::to_vec(black_box(receipt))))))
}

fn decode(operations: u64) -> Duration {
    let order = Order::new(1);
    let bytes = serde_json::to_vec(&Receipt::new(&order)).unwrap();
    let mut decoded: Vec<Receipt> = Vec::with_capacity(usize::try_from(operations).unwrap());
    timed(|| decoded.extend((0..operations).map(|_| serde_json::from_slice(black_box(&bytes)).unwrap())))
}

fn reserve_and_complete(runtime: &Runtime, operations: u64) -> Duration {
    let asked: Vec<Asked> = orders(operations).iter().map(Asked::new).collect();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    runtime.block_on(async {
        let started = Instant::now();
        for asked in &asked {
            black_box(asked.reserve(&*store, asked.owner).await);
            black_box(asked.complete(&*store).await);
        }
        started.elapsed()
    })
}

/// The one store operation of a replay.
fn reserve_what_is_held(runtime: &Runtime, operations: u64) -> Duration {
    let asked: Vec<Asked> = orders(operations).iter().map(Asked::new).collect();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    runtime.block_on(async {
        for asked in &asked {
            asked.reserve(&*store, asked.owner).await;
            asked.complete(&*store).await;
        }
        let other = OwnerToken::random();
        let started = Instant::now();
        for asked in &asked {
            black_box(asked.reserve(&*store, other).await);
        }
        started.elapsed()
    })
}

/// How long `threads` threads take for the same number of first calls each, on one store.
fn threads(threads: u64, operations: u64) -> Duration {
    let idempotency = Idempotency::new(MemoryStore::new());
    let barrier = Barrier::new(usize::try_from(threads).unwrap());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (idempotency, barrier) = (&idempotency, &barrier);
                scope.spawn(move || {
                    let first = thread * operations;
                    let orders: Vec<Order> = (first..first + operations).map(Order::new).collect();
                    let receipts: Vec<Receipt> = orders.iter().map(Receipt::new).collect();
                    runtime().block_on(async {
                        barrier.wait();
                        let started = Instant::now();
                        for (order, receipt) in orders.iter().zip(receipts) {
                            black_box(charge(idempotency, order, Some(receipt)).await.unwrap());
                        }
                        (started, Instant::now())
                    })
                })
            })
            .collect();
        let spans: Vec<(Instant, Instant)> =
            workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        let first = spans.iter().map(|span| span.0).min().unwrap();
        let last = spans.iter().map(|span| span.1).max().unwrap();
        last - first
    })
}

fn calls(c: &mut Criterion<Ratio>) {
    let runtime = runtime();
    compare(
        c,
        "first call over its parts",
        ("first call", &mut |operations| first_calls(&runtime, operations)),
        &mut [
            ("fingerprint", &mut fingerprints),
            ("key", &mut keys),
            ("reserve and complete", &mut |operations| reserve_and_complete(&runtime, operations)),
            ("encode", &mut encode),
        ],
    );
    compare(
        c,
        "replay over its parts",
        ("replay", &mut |operations| replays(&runtime, operations)),
        &mut [
            ("fingerprint", &mut fingerprints),
            ("key", &mut keys),
            ("reserve", &mut |operations| reserve_what_is_held(&runtime, operations)),
            ("decode", &mut decode),
        ],
    );
    ratio(c, "throughput of two threads over one", || {
        let operations = 20_000;
        let (one, two) = (threads(1, operations), threads(2, operations));
        count(2) * one.as_secs_f64() / two.as_secs_f64()
    });
}

criterion_group! {
    name = benches;
    config = support::criterion(30, Duration::from_secs(5));
    targets = calls
}
criterion_main!(benches);
