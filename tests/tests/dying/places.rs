//! Where the records of a test are: one place a test, at servers that all tests share.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::servers::Folder;
use tests::servers::mariadb::MariaDb;
use tests::servers::redis::Redis;
use tests::servers::{dynamodb, postgres};

/// A store that several processes can share.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    MySql,
    Redis,
    DynamoDb,
}

/// A store with nothing in it, and a folder for the ledger.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) url: String,
    folder: Folder,
}

impl Place {
    pub(crate) fn new(kind: Kind) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (folder, number) = (Folder::new("dying"), NEXT.fetch_add(1, Ordering::Relaxed));
        let url = match kind {
            Kind::Sqlite => format!("sqlite:{}", folder.path().join("records.db").display()),
            Kind::Postgres => postgres::shared().database(),
            Kind::MySql => maria().database(&format!("test_{number}")),
            Kind::Redis => redis().url(number % 16),
            Kind::DynamoDb => {
                format!("dynamodb://test-{number}?region=us-east-1&endpoint={}", dynamo().endpoint())
            }
        };
        Self { url, folder }
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }
}

fn redis() -> &'static Redis {
    static SHARED: OnceLock<Redis> = OnceLock::new();
    SHARED.get_or_init(Redis::start)
}

fn maria() -> &'static MariaDb {
    static SHARED: OnceLock<MariaDb> = OnceLock::new();
    SHARED.get_or_init(MariaDb::start)
}

fn dynamo() -> &'static dynamodb::DynamoDb {
    static SHARED: OnceLock<dynamodb::DynamoDb> = OnceLock::new();
    SHARED.get_or_init(dynamodb::DynamoDb::start)
}
