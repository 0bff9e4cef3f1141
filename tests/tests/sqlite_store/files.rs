//! Opening: what is in the way is named, with the file.

use std::time::Duration;

use idempotent_runtime::store::{OwnerToken, Store, StoreErrorKind};
use idempotent_runtime::stores::{SqliteStore, SqliteStoreBuilder, Synchronous};

use crate::support::*;

async fn refused(builder: SqliteStoreBuilder) -> String {
    let error = builder.open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
    words(&error)
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let folder = Folder::new();
    let file = folder.path().join("no/such/records.db");
    let words = refused(SqliteStore::builder(&file)).await;
    assert!(words.contains(file.to_str().unwrap()) && words.contains("does not exist"), "{words}");
    assert!(!folder.path().join("no").exists());
}

#[tokio::test]
async fn a_directory_is_no_file() {
    let folder = Folder::new();
    let words = refused(SqliteStore::builder(folder.path())).await;
    assert!(words.contains("directory"), "{words}");
}

#[tokio::test]
async fn another_kind_of_file_is_refused_and_left_alone() {
    let folder = Folder::new();
    let text = "dear diary, ".repeat(1000);
    std::fs::write(folder.file(), &text).unwrap();
    let words = refused(SqliteStore::builder(folder.file())).await;
    assert!(words.contains("not a SQLite database"), "{words}");
    assert_eq!(std::fs::read_to_string(folder.file()).unwrap(), text);
}

#[tokio::test]
async fn memory_is_no_file() {
    for path in ["", ":memory:"] {
        assert!(refused(SqliteStore::builder(path)).await.contains("memory"));
    }
}

#[tokio::test]
async fn a_uri_is_a_name_like_any_other() {
    let folder = Folder::new();
    let file = folder.path().join("file:a?mode=memory");
    let store = SqliteStore::open(&file).await.unwrap();
    grant(&store, &key("1"), OwnerToken::random()).await;
    assert!(file.exists());
}

#[tokio::test]
async fn tables_are_not_created_against_the_will() {
    let folder = Folder::new();
    let builder = SqliteStore::builder(folder.file()).create_schema(false);
    assert!(builder.clone().open().await.is_err());
    assert!(!folder.file().exists());

    beside(&folder.file()).execute_batch("CREATE TABLE orders (id)").unwrap();
    let words = refused(builder.clone()).await;
    assert!(words.contains("SqliteStoreBuilder::schema"), "{words}");

    beside(&folder.file()).execute_batch(&builder.schema().unwrap()).unwrap();
    let store = builder.open().await.unwrap();
    grant(&store, &key("1"), OwnerToken::random()).await;
}

#[tokio::test]
async fn a_table_that_is_somebody_elses_is_refused() {
    let folder = Folder::new();
    beside(&folder.file()).execute_batch("CREATE TABLE idempotency (id)").unwrap();
    let words = refused(SqliteStore::builder(folder.file())).await;
    assert!(words.contains("another table name"), "{words}");
    let store = SqliteStore::builder(folder.file()).table("mine").open().await.unwrap();
    grant(&store, &key("1"), OwnerToken::random()).await;
    let tables: i64 = beside(&folder.file())
        .query_row("SELECT count(*) FROM sqlite_master WHERE name LIKE 'idempotency%'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1, "nothing half made");
}

#[tokio::test]
async fn a_table_name_is_an_identifier() {
    let folder = Folder::new();
    let long = "x".repeat(61);
    for name in ["", "1a", "a b", "a\"; DROP TABLE x; --", "sqlite_a", "naïve", &long] {
        let words = refused(SqliteStore::builder(folder.file()).table(name)).await;
        assert!(words.contains("table name"), "{words}");
        assert!(SqliteStore::builder(folder.file()).table(name).schema().is_err());
    }
    assert!(!folder.file().exists());
}

#[tokio::test]
async fn two_tables_in_one_file_do_not_meet() {
    let folder = Folder::new();
    let one = SqliteStore::builder(folder.file()).table("one").open().await.unwrap();
    let two = SqliteStore::builder(folder.file()).table("two").synchronous(Synchronous::Normal);
    let two = two.open().await.unwrap();
    grant(&one, &key("1"), OwnerToken::random()).await;
    grant(&two, &key("1"), OwnerToken::random()).await;
    assert_eq!((one.table(), two.table()), ("one", "two"));
    assert_eq!(one.path(), folder.file());
}

#[tokio::test]
async fn a_file_locked_for_good_is_unavailable() {
    let folder = Folder::new();
    let other = beside(&folder.file());
    other.execute_batch("CREATE TABLE orders (id); BEGIN EXCLUSIVE").unwrap();
    let builder = SqliteStore::builder(folder.file()).busy_timeout(Duration::from_millis(100));
    let error = builder.clone().open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
    other.execute_batch("COMMIT").unwrap();
    builder.open().await.unwrap();
}

/// Turning write-ahead logging on is where SQLite's own waiting does not work.
#[tokio::test]
async fn many_open_a_new_file_at_once() {
    for _round in 0..20 {
        let folder = Folder::new();
        let opening: Vec<_> = (0..8).map(|_| tokio::spawn(SqliteStore::open(folder.file()))).collect();
        for store in opening {
            let store = store.await.unwrap().unwrap();
            assert!(store.load(&key("1")).await.unwrap().is_none());
        }
    }
}
