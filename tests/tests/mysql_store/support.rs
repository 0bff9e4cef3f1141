//! What these tests share: a server, requests, and an application's own connection.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Grant, Lease, OwnerToken, Record, Reserve, Reserved, Settled, Store, StoreError, Stored, TakeOver,
};
use idempotent_runtime::stores::{MySqlStore, MySqlStoreBuilder};
use sqlx::MySqlPool;
use sqlx::mysql::MySqlPoolOptions;
use tests::servers::mariadb::MariaDb;

pub(crate) const LEASE: Lease =
    Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
pub(crate) const KEEP: Duration = Duration::from_secs(3600);
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint::from_parts(1, [7; 32]);

/// The server of all tests that leave it as it is.
pub(crate) fn server() -> &'static MariaDb {
    static SERVER: OnceLock<MariaDb> = OnceLock::new();
    SERVER.get_or_init(MariaDb::start)
}

/// Sets up a store as it is by default.
pub(crate) fn builder(url: &str) -> MySqlStoreBuilder {
    MySqlStore::builder(MySqlStore::pool_for(url).unwrap())
}

/// A store with a small pool.
pub(crate) async fn small_store(url: &str, connections: u32) -> MySqlStore {
    MySqlStore::builder(small_pool(url, connections).await).open().await.unwrap()
}

/// A pool of so many connections.
pub(crate) async fn small_pool(url: &str, connections: u32) -> MySqlPool {
    let pool = MySqlPoolOptions::new().max_connections(connections).test_before_acquire(false);
    pool.connect(url).await.unwrap()
}

/// A store in a database of its own.
pub(crate) async fn store(name: &str) -> MySqlStore {
    MySqlStore::connect(&server().database(name)).await.unwrap()
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

pub(crate) async fn grant(store: &MySqlStore, key: &RecordKey, owner: OwnerToken) -> Grant {
    match store.reserve(request(key, owner)).await.unwrap_or_else(|error| panic!("{}", words(&error))) {
        Reserved::Granted(grant) => grant,
        Reserved::Held(record) => panic!("held: {record:?}"),
    }
}

pub(crate) async fn held(store: &MySqlStore, key: &RecordKey) -> Record {
    match store
        .reserve(request(key, OwnerToken::random()))
        .await
        .unwrap_or_else(|error| panic!("{}", words(&error)))
    {
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
