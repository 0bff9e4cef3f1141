//! What these tests share: one server for all of them, requests, and counting what a server was asked.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Grant, Lease, OwnerToken, Record, Reserve, Reserved, Settled, Store, StoreError, Stored, TakeOver,
};
use idempotent_runtime::stores::RedisStore;
use tests::servers::redis::Redis;

pub(crate) const LEASE: Lease =
    Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
pub(crate) const KEEP: Duration = Duration::from_secs(3600);
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint::from_parts(1, [7; 32]);

/// The server that tests share which do it no harm.
pub(crate) fn shared() -> &'static Redis {
    static SHARED: OnceLock<Redis> = OnceLock::new();
    SHARED.get_or_init(Redis::start)
}

/// The URL of a database of the shared server that no other test uses.
pub(crate) fn fresh_url() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    shared().url(NEXT.fetch_add(1, Ordering::Relaxed) % 16)
}

/// A store with keys that no other test has.
pub(crate) async fn fresh() -> RedisStore {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let prefix = format!("t{}:", NEXT.fetch_add(1, Ordering::Relaxed));
    RedisStore::builder(fresh_url()).prefix(prefix).open().await.unwrap()
}

pub(crate) fn key(text: &str) -> RecordKey {
    RecordKey::new("charge", format!("test/charge/{text}"))
}

pub(crate) fn request(key: &RecordKey, owner: OwnerToken) -> Reserve<'_> {
    Reserve {
        key,
        owner,
        fingerprint: FINGERPRINT,
        lease: LEASE,
        take_over: TakeOver::Always,
        max_attempts: 10,
    }
}

pub(crate) async fn grant(store: &impl Store, key: &RecordKey, owner: OwnerToken) -> Grant {
    match store.reserve(request(key, owner)).await.unwrap() {
        Reserved::Granted(grant) => grant,
        Reserved::Held(record) => panic!("held: {record:?}"),
    }
}

pub(crate) async fn held(store: &impl Store, key: &RecordKey) -> Record {
    match store.reserve(request(key, OwnerToken::random())).await.unwrap() {
        Reserved::Granted(grant) => panic!("granted: {grant:?}"),
        Reserved::Held(record) => record,
    }
}

pub(crate) fn completed(result: &str) -> Settled {
    Settled::Completed(Stored { version: 1, bytes: Arc::from(result.as_bytes()) })
}

/// An error and what it says underneath.
pub(crate) fn words(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}
