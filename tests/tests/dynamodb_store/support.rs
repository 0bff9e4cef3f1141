//! What these tests share: one emulator for all of them, a table for each, and requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Grant, Lease, OwnerToken, Record, Reserve, Reserved, Settled, Store, StoreError, Stored, TakeOver,
};
use idempotent_runtime::stores::{DynamoDbStore, DynamoDbStoreBuilder};
use tests::servers::dynamodb::{DynamoDb, client};

pub(crate) const LEASE: Lease =
    Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
pub(crate) const KEEP: Duration = Duration::from_secs(3600);
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint::from_parts(1, [7; 32]);

/// The emulator of this test binary.
pub(crate) fn server() -> &'static DynamoDb {
    static SERVER: OnceLock<DynamoDb> = OnceLock::new();
    SERVER.get_or_init(DynamoDb::start)
}

/// A client that tries each request once.
pub(crate) fn direct() -> Client {
    client(&server().endpoint())
}

/// The name of a table that nobody else has.
pub(crate) fn table() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("records-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A store in a new table, by exact clocks.
pub(crate) fn builder() -> DynamoDbStoreBuilder {
    DynamoDbStore::builder(direct()).table(table()).clock_skew(Duration::ZERO)
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

pub(crate) async fn grant(store: &DynamoDbStore, key: &RecordKey, owner: OwnerToken) -> Grant {
    match store.reserve(request(key, owner)).await.unwrap() {
        Reserved::Granted(grant) => grant,
        Reserved::Held(record) => panic!("held: {record:?}"),
    }
}

pub(crate) async fn held(store: &DynamoDbStore, key: &RecordKey) -> Record {
    match store.reserve(request(key, OwnerToken::random())).await.unwrap() {
        Reserved::Granted(grant) => panic!("granted: {grant:?}"),
        Reserved::Held(record) => record,
    }
}

pub(crate) fn completed(result: &str) -> Settled {
    Settled::Completed(Stored { version: 1, bytes: Arc::from(result.as_bytes()) })
}

/// The item of a key, as it lies in the table.
pub(crate) async fn item(store: &DynamoDbStore, key: &RecordKey) -> Option<HashMap<String, AttributeValue>> {
    let get =
        direct().get_item().table_name(store.table()).key("key", AttributeValue::S(key.as_str().into()));
    get.consistent_read(true).send().await.unwrap().item
}

/// Changes one attribute of an item behind the store's back.
pub(crate) async fn spoil(store: &DynamoDbStore, key: &RecordKey, attribute: &str, value: AttributeValue) {
    let update = direct().update_item().table_name(store.table());
    let update = update.key("key", AttributeValue::S(key.as_str().into()));
    let update =
        update.update_expression("SET #name = :value").expression_attribute_names("#name", attribute);
    update.expression_attribute_values(":value", value).send().await.unwrap();
}

/// An error and what it says underneath.
pub(crate) fn words(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}
