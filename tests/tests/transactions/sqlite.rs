//! SQLite.

use std::time::Duration;

use idempotent_runtime::stores::SqliteStore;
use idempotent_runtime::{Idempotency, Outcome, with_outcome};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Executor, Sqlite, SqliteConnection, SqlitePool};
use tests::Order;
use tests::servers::Folder;

use self::common::{charge_on, post, postings};
use crate::failure::Failure;

#[path = "common.rs"]
mod common;
#[path = "random.rs"]
mod random;

pub(crate) type Db = Sqlite;
pub(crate) type Connection = SqliteConnection;
pub(crate) type Pool = SqlitePool;

pub(crate) const SELECT: &str = "SELECT cents FROM postings WHERE id = ?";
pub(crate) const INSERT: &str = "INSERT INTO postings VALUES (?, ?)";

/// It has no other.
pub(crate) const LEVELS: &[&str] = &["SERIALIZABLE"];

/// Whether a body that rolls back by itself is told from one that commits.
pub(crate) const TELLS_ROLLBACK: bool = true;

/// A file with a table of postings and those for records, and the handle for it.
pub(crate) struct Shop {
    pub(crate) idempotency: Idempotency,
    pub(crate) store: SqliteStore,
    pub(crate) pool: SqlitePool,
    folder: Folder,
}

pub(crate) async fn shop(_level: &str) -> Shop {
    let folder = Folder::new("transactions");
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.unwrap();
    let pool = SqlitePoolOptions::new().max_connections(24);
    let pool = pool.connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    pool.execute("CREATE TABLE postings (id text, cents integer)").await.unwrap();
    Shop { idempotency: Idempotency::new(store.clone()), store, pool, folder }
}

/// A database without the table of records.
pub(crate) async fn other_database() -> SqlitePool {
    SqlitePool::connect("sqlite::memory:").await.unwrap()
}

/// In milliseconds.
async fn busy_timeout(connection: &mut SqliteConnection) -> i64 {
    sqlx::query_scalar("PRAGMA busy_timeout").fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn the_callers_own_time_for_locks_is_left_as_it_is() {
    let Shop { idempotency, pool, .. } = &shop("").await;
    let mut first = pool.begin().await.unwrap();
    charge_on(idempotency, &mut first, &Order::new("o-1", 250)).await.unwrap();
    let mut second = pool.acquire().await.unwrap();
    second.execute("PRAGMA busy_timeout = 7000; BEGIN").await.unwrap();
    let call = idempotency.operation("charge").wait(Duration::from_millis(100)).key("o-1");
    let answer = call.run_in(&mut *second, async |_, _| Ok::<u64, Failure>(1)).await;
    assert_eq!(answer, Failure::code("in-progress, retryable"));
    assert_eq!(busy_timeout(&mut second).await, 7000);
    // Nor when the call is dropped while it waits.
    let call = idempotency.operation("charge").wait(Duration::from_millis(400)).key("o-1");
    let dropped = call.run_in(&mut *second, async |_, _| Ok::<u64, Failure>(1));
    assert!(tokio::time::timeout(Duration::from_millis(100), dropped).await.is_err());
    assert_eq!(busy_timeout(&mut second).await, 7000);
}

#[tokio::test]
async fn a_transaction_that_has_read_before_others_wrote_is_told_to_try_another_one() {
    let Shop { idempotency, pool, .. } = &shop("").await;
    let mut late = pool.begin().await.unwrap();
    let _: i64 = sqlx::query_scalar("SELECT count(*) FROM postings").fetch_one(&mut *late).await.unwrap();
    let mut first = pool.begin().await.unwrap();
    charge_on(idempotency, &mut first, &Order::new("o-1", 250)).await.unwrap();
    // While the other one is open, and after it.
    let refused = Failure::code("store-unavailable, retryable");
    assert_eq!(charge_on(idempotency, &mut late, &Order::new("o-1", 250)).await, refused);
    first.commit().await.unwrap();
    assert_eq!(charge_on(idempotency, &mut late, &Order::new("o-1", 250)).await, refused);
    late.rollback().await.unwrap();
    let mut another = pool.begin().await.unwrap();
    let replayed = with_outcome(charge_on(idempotency, &mut another, &Order::new("o-1", 250))).await;
    assert_eq!(replayed, (Ok(250), Some(Outcome::Replayed)));
}

#[tokio::test]
async fn a_file_of_the_same_tables_elsewhere_is_another_database() {
    let (here, there) = (shop("").await, shop("").await);
    let mut tx = there.pool.begin().await.unwrap();
    let call = here.idempotency.operation("charge").key("o-1");
    let run = async |_: &mut SqliteConnection, _| -> Result<u64, idempotent_runtime::Error> {
        panic!("the body runs")
    };
    let error = call.run_in(&mut *tx, run).await.unwrap_err();
    assert!(!error.is_retryable());
    let words = std::error::Error::source(&error).unwrap().source().unwrap().to_string();
    assert!(words.contains("another database"), "{words}");
    // By another name it is the same.
    let name = here.folder.path().join("../").join(here.folder.path().file_name().unwrap()).join("shop.db");
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(name)).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(charge_on(&here.idempotency, &mut tx, &Order::new("o-1", 1)).await, Ok(1));
}

#[tokio::test]
async fn a_call_while_another_is_at_work_under_a_lease_is_told_at_once() {
    let Shop { idempotency, pool, .. } = &shop("").await;
    let (started, wait_for_start) = tokio::sync::oneshot::channel();
    let (end, wait_for_end) = tokio::sync::oneshot::channel::<()>();
    let leased = tokio::spawn({
        let call = idempotency.operation("charge").key("o-1");
        async move {
            let body = async move {
                started.send(()).unwrap();
                wait_for_end.await.unwrap();
                Ok::<u64, Failure>(1)
            };
            call.run(|_| body).await
        }
    });
    wait_for_start.await.unwrap();
    // It has the lock, so it cannot wait for what the other one has to write.
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let answer = call.run_in(&mut tx, async |_, _| Ok::<u64, Failure>(2)).await;
    assert_eq!(answer, Failure::code("in-progress, retryable"));
    tx.rollback().await.unwrap();
    end.send(()).unwrap();
    assert_eq!(leased.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn a_transaction_that_sqlite_has_rolled_back_is_the_bodys_own_error() {
    let Shop { idempotency, store, pool, .. } = &shop("").await;
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let answer = call.run_in(&mut tx, async |tx, _| {
        post(&mut *tx, &Order::new("o-1", 1)).await?;
        // As it does by itself when the disk is full.
        tx.execute("ROLLBACK").await?;
        Err::<u64, _>(Failure::Declined)
    });
    assert_eq!(answer.await, Err(Failure::Declined));
    assert_eq!((postings(pool).await, tests::records(store).await.len()), (0, 0));
}
