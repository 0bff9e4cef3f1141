//! What the test binaries under `tests/` share: a small payment service, and looking into a store.

pub mod agreement;
pub mod examples;
pub mod servers;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use idempotent_runtime::store::{ListQuery, Record, Store};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::{Error, Idempotency, IdempotencyBuilder};
use serde::{Deserialize, Serialize};

/// What is charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The key.
    pub id: String,
    /// In cents.
    pub amount: u64,
}

impl Order {
    /// An order.
    pub fn new(id: &str, amount: u64) -> Self {
        Self { id: id.to_owned(), amount }
    }
}

/// The error of the payment service, which can be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChargeError {
    /// Final.
    Declined,
    /// Before anything was charged.
    GatewayDown,
    /// From the library: its code.
    Idempotency(String),
}

impl From<Error> for ChargeError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error.code().to_owned())
    }
}

impl ChargeError {
    /// The error that the library gives under this code.
    pub fn code(code: &str) -> Self {
        Self::Idempotency(code.to_owned())
    }
}

/// Counts how often a body ran. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Runs(Arc<AtomicU32>);

impl Runs {
    /// Counts one run, and says which it is.
    pub fn count(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many there were.
    pub fn total(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A handle on a new memory store, and the store.
pub fn on_memory() -> (Idempotency, MemoryStore) {
    on_memory_with(|builder| builder)
}

/// The same, with settings.
///
/// # Panics
/// When the settings cannot work.
pub fn on_memory_with(
    settings: impl FnOnce(IdempotencyBuilder) -> IdempotencyBuilder,
) -> (Idempotency, MemoryStore) {
    let store = MemoryStore::new();
    let builder = settings(Idempotency::builder().store(store.clone()));
    (builder.build().expect("the settings of a test work"), store)
}

/// All that a store holds.
///
/// # Panics
/// When the store does not answer.
pub async fn records(store: &impl Store) -> Vec<Record> {
    store.list(&ListQuery { limit: 10_000, ..ListQuery::default() }).await.expect("the store answers").records
}

/// The one record that a store holds.
///
/// # Panics
/// When it holds none, or several.
pub async fn only_record(store: &impl Store) -> Record {
    let mut records = records(store).await;
    assert_eq!(records.len(), 1, "one record was expected: {records:?}");
    records.pop().expect("just counted")
}

/// Polls a future `times` times without waiting to be woken. `Ready` as soon as it is.
pub fn poll_times<F: Future + ?Sized>(mut future: Pin<&mut F>, times: usize) -> Poll<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Poll::Ready(output);
        }
    }
    Poll::Pending
}
