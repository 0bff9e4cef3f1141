//! What these tests share: folders, requests, and an application's own connection to the same file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Grant, Lease, OwnerToken, Record, Reserve, Reserved, Settled, Store, StoreError, Stored, TakeOver,
};
use idempotent_runtime::stores::SqliteStore;

pub(crate) const LEASE: Lease =
    Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
pub(crate) const KEEP: Duration = Duration::from_secs(3600);
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint::from_parts(1, [7; 32]);

/// A folder on the disk that the build is on, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("records.db")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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

pub(crate) async fn grant(store: &SqliteStore, key: &RecordKey, owner: OwnerToken) -> Grant {
    match store.reserve(request(key, owner)).await.unwrap() {
        Reserved::Granted(grant) => grant,
        Reserved::Held(record) => panic!("held: {record:?}"),
    }
}

pub(crate) async fn held(store: &SqliteStore, key: &RecordKey) -> Record {
    match store.reserve(request(key, OwnerToken::random())).await.unwrap() {
        Reserved::Granted(grant) => panic!("granted: {grant:?}"),
        Reserved::Held(record) => record,
    }
}

pub(crate) fn completed(result: &str) -> Settled {
    Settled::Completed(Stored { version: 1, bytes: Arc::from(result.as_bytes()) })
}

/// The connection of an application, or an operator, beside the store's.
pub(crate) fn beside(file: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection
}

/// An error and what it says underneath.
pub(crate) fn words(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}
