//! What a record takes in memory, and how often a call allocates. Numbers, not times: they are the same in every run.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use allocation_counter::measure;
use idempotent_runtime::Idempotency;
use idempotent_runtime::stores::MemoryStore;

use support::count;
use support::shop::{Order, Receipt, charge};

#[expect(dead_code, reason = "the ratios are for the other benchmarks")]
mod support;

const RECORDS: u64 = 100_000;
/// What the namespace, the operation and the order's id make.
const KEY_BYTES: u64 = 64;
const RESULT_BYTES: u64 = 300;
const FINGERPRINT_BYTES: u64 = 32;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let orders: Vec<Order> = (0..RECORDS).map(Order::new).collect();
    let idempotency =
        Idempotency::builder().namespace("benchmark-shop").store(MemoryStore::new()).build().unwrap();
    let call = |order: &Order, receipt| drop(runtime.block_on(charge(&idempotency, order, receipt)).unwrap());
    let kept: i64 = orders
        .iter()
        .map(|order| {
            // The receipt is made outside and dropped inside, so it counts as freed; what is encoded of it stays.
            let receipt = Some(Receipt::new(order));
            let of_receipt = measure(|| drop(receipt.clone())).bytes_total;
            measure(|| call(order, receipt)).bytes_current + i64::try_from(of_receipt).unwrap()
        })
        .sum();

    let order = Order::new(RECORDS);
    let receipt = Some(Receipt::new(&order));
    let first = measure(|| call(&order, receipt));
    let replay = measure(|| call(&order, None));

    let content = KEY_BYTES + RESULT_BYTES + FINGERPRINT_BYTES;
    let each = count(u64::try_from(kept).unwrap()) / count(RECORDS);
    println!(
        "a record with {content} bytes of key, result and fingerprint takes {each:.0} bytes: {:.2}x",
        each / count(content)
    );
    println!("allocations of a first call: {}; of a replay: {}", first.count_total, replay.count_total);
}
