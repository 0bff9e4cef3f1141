//! What these tests share: stores, requests, and looking into the database.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Grant, Lease, OwnerToken, Record, Reserve, Reserved, Settled, Store, StoreError, Stored, TakeOver,
};
use idempotent_runtime::stores::PostgresStore;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tests::servers::postgres::shared;

pub(crate) const LEASE: Lease =
    Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
pub(crate) const KEEP: Duration = Duration::from_secs(3600);
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint::from_parts(1, [7; 32]);

/// An application's pool.
pub(crate) fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(8).acquire_timeout(Duration::from_secs(5)).connect_lazy(url).unwrap()
}

/// A store in a database of its own.
pub(crate) async fn store() -> PostgresStore {
    PostgresStore::builder(pool(&shared().database())).open().await.unwrap()
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

pub(crate) async fn grant(store: &PostgresStore, key: &RecordKey, owner: OwnerToken) -> Grant {
    match store.reserve(request(key, owner)).await.unwrap() {
        Reserved::Granted(grant) => grant,
        Reserved::Held(record) => panic!("held: {record:?}"),
    }
}

pub(crate) async fn held(store: &PostgresStore, key: &RecordKey) -> Record {
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
