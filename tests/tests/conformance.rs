//! The stores that need no server keep the promises of the contract, and the suite notices a store that does not.

use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::testing::conformance::{self, Subject};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_by_a_manual_clock() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    conformance::run(Subject::new(store).clock(clock)).await;
}

#[tokio::test(start_paused = true)]
async fn memory_by_a_paused_clock() {
    conformance::run(MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_by_real_time() {
    conformance::run(MemoryStore::new()).await;
}
