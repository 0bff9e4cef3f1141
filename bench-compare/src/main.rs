//! Calls of one function, with orders of 200 bytes answered by receipts of 300, made at most once in three ways:
//!
//! * `idempotent-runtime`: an annotated function. The fingerprint is SHA-256 of a canonical form.
//! * `idempotent` 2, its JSON path. It takes the request as bytes, so the order is encoded as JSON for it, as a user would;
//!   its fingerprint is xxHash3, which no chosen input has to resist.
//! * `cached`: for scale only. It clones values and promises none of this: no fingerprint, no reservation that a second
//!   process could see, no lease, no encoding.
//!
//! All on one current-thread runtime, where the actor of `idempotent` 2 answers soonest. The three take turns, in each of
//! which the stores are new, and what is printed are medians of the turns' ratios. Values are made before the clock runs
//! and dropped after it has stopped.

use std::time::{Duration, Instant};

use cached::macros::cached;
use idempotent::{ExecutionOutcome, IdempotencyKey, IdempotencyStore};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::Idempotency;
use tokio::runtime::Runtime;

use shop::{Order, Receipt};

#[path = "../../idempotent-runtime/benches/support/shop.rs"]
#[allow(dead_code)]
mod shop;

const TURNS: usize = 400;
const CALLS: u64 = 128;
const LEASE: Duration = Duration::from_secs(30);
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the first calls of a turn took, and the replays.
type Spans = [f64; 2];

fn ours(runtime: &Runtime, orders: &[Order], receipts: Vec<Receipt>) -> Spans {
    runtime.block_on(async {
        let idempotency = Idempotency::new(MemoryStore::new());
        let mut answers = Vec::with_capacity(2 * orders.len());
        let started = Instant::now();
        for (order, receipt) in orders.iter().zip(receipts) {
            answers.push(shop::charge(&idempotency, order, Some(receipt)).await.unwrap());
        }
        let first = started.elapsed();
        let started = Instant::now();
        for order in orders {
            answers.push(shop::charge(&idempotency, order, None).await.unwrap());
        }
        [first, started.elapsed()].map(|span| span.as_secs_f64())
    })
}

fn theirs(runtime: &Runtime, orders: &[Order], receipts: Vec<Receipt>) -> Spans {
    runtime.block_on(async {
        let store = idempotent::memory::MemoryStore::builder().try_build().unwrap();
        let call = async |order: &Order, receipt: Option<Receipt>| {
            let key = IdempotencyKey::new(order.id.as_str()).unwrap();
            let request = serde_json::to_vec(order).unwrap();
            let outcome = store
                .claim(&key, LEASE)
                .fingerprint("charge", &request)
                .json()
                .execute_or_replay(KEEP, |_| async { Ok(receipt.unwrap()) })
                .await
                .unwrap();
            match outcome {
                ExecutionOutcome::Executed(receipt) | ExecutionOutcome::Replayed(receipt) => receipt,
                _ => panic!("neither executed nor replayed"),
            }
        };
        let mut answers = Vec::with_capacity(2 * orders.len());
        let started = Instant::now();
        for (order, receipt) in orders.iter().zip(receipts) {
            answers.push(call(order, Some(receipt)).await);
        }
        let first = started.elapsed();
        let started = Instant::now();
        for order in orders {
            answers.push(call(order, None).await);
        }
        [first, started.elapsed()].map(|span| span.as_secs_f64())
    })
}

#[cached(key = "String", convert = "{ _order.id.clone() }")]
async fn kept(_order: &Order, receipt: Option<Receipt>) -> Receipt {
    receipt.unwrap()
}

fn cached(runtime: &Runtime, orders: &[Order], receipts: Vec<Receipt>) -> Spans {
    runtime.block_on(async {
        let mut answers = Vec::with_capacity(2 * orders.len());
        let started = Instant::now();
        for (order, receipt) in orders.iter().zip(receipts) {
            answers.push(kept(order, Some(receipt)).await);
        }
        let first = started.elapsed();
        let started = Instant::now();
        for order in orders {
            answers.push(kept(order, None).await);
        }
        [first, started.elapsed()].map(|span| span.as_secs_f64())
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut turns: Vec<[Spans; 3]> = Vec::new();
    for turn in 0..TURNS as u64 {
        // `cached` has one store for the whole process: new orders are new to it.
        let orders: Vec<Order> = (turn * CALLS..(turn + 1) * CALLS).map(Order::new).collect();
        let receipts: Vec<Receipt> = orders.iter().map(Receipt::new).collect();
        turns.push([
            ours(&runtime, &orders, receipts.clone()),
            theirs(&runtime, &orders, receipts.clone()),
            cached(&runtime, &orders, receipts),
        ]);
    }
    for (call, name) in ["first call", "replay"].into_iter().enumerate() {
        let each = |who: usize| 1e9 / CALLS as f64 * median(turns.iter().map(|turn| turn[who][call]).collect());
        let over = |who: usize| median(turns.iter().map(|turn| turn[who][call] / turn[0][call]).collect());
        println!(
            "{name}: idempotent-runtime {:.0} ns; idempotent 2 {:.0} ns, {:.2}x as long; cached {:.0} ns, {:.2}x as long",
            each(0), each(1), over(1), each(2), over(2)
        );
    }
}
