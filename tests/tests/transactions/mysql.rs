//! MariaDB, with the statements for it and with those for MySQL.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idempotent_runtime::stores::MySqlStore;
use idempotent_runtime::{Idempotency, Outcome, with_outcome};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{Executor, MySql, MySqlConnection, MySqlPool};
use tests::Order;
use tests::servers::mariadb::MariaDb;

use self::common::{charge_on, post, postings};
use crate::failure::Failure;

#[path = "common.rs"]
mod common;
#[path = "on_a_server.rs"]
mod on_a_server;
#[path = "random.rs"]
mod random;

pub(crate) type Db = MySql;
pub(crate) type Connection = MySqlConnection;
pub(crate) type Pool = MySqlPool;

pub(crate) const SELECT: &str = "SELECT cents FROM postings WHERE id = ?";
pub(crate) const INSERT: &str = "INSERT INTO postings VALUES (?, ?)";

/// The first is the server's own.
pub(crate) const LEVELS: &[&str] = &["REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE", "READ UNCOMMITTED"];

/// Whether a body that rolls back by itself is told from one that commits.
pub(crate) const TELLS_ROLLBACK: bool = true;

/// A database with a table of postings and one for records, and the handle for it.
pub(crate) struct Shop {
    pub(crate) idempotency: Idempotency,
    pub(crate) store: MySqlStore,
    pub(crate) pool: MySqlPool,
}

fn server() -> &'static MariaDb {
    static SERVER: OnceLock<MariaDb> = OnceLock::new();
    SERVER.get_or_init(MariaDb::start)
}

fn new_database() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    server().database(&format!("shop_{}", COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// One whose transactions are of an isolation level.
pub(crate) async fn shop(level: &'static str) -> Shop {
    shop_for(level, false).await
}

/// With the statements for MySQL, if `mysql` says so.
async fn shop_for(level: &'static str, mysql: bool) -> Shop {
    let pool = MySqlPoolOptions::new().max_connections(12).after_connect(move |connection, _| {
        Box::pin(async move {
            let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
            connection.execute(sqlx::AssertSqlSafe(set)).await.map(drop)
        })
    });
    let pool = pool.connect(&new_database()).await.unwrap();
    pool.execute("CREATE TABLE postings (id varchar(100), cents bigint)").await.unwrap();
    let store = MySqlStore::builder(pool.clone()).procedures(mysql).open().await.unwrap();
    Shop { idempotency: Idempotency::new(store.clone()), store, pool }
}

/// A database without the table of records.
pub(crate) async fn other_database() -> MySqlPool {
    MySqlPool::connect(&new_database()).await.unwrap()
}

/// A store that has not looked at its database.
pub(crate) fn unopened_store(pool: MySqlPool) -> MySqlStore {
    MySqlStore::new(pool)
}

#[tokio::test]
async fn at_every_level_a_waiting_duplicate_replays_in_its_own_transaction() {
    for level in LEVELS {
        for mysql in [false, true] {
            let Shop { idempotency, pool, .. } = &shop_for(level, mysql).await;
            let order = Order::new("o-1", 250);
            let mut first = pool.begin().await.unwrap();
            charge_on(idempotency, &mut first, &order).await.unwrap();
            let duplicate = tokio::spawn({
                let (idempotency, pool, order) = (idempotency.clone(), pool.clone(), order.clone());
                async move {
                    let mut tx = pool.begin().await.unwrap();
                    let _: i64 = sqlx::query_scalar("SELECT 1").fetch_one(&mut *tx).await.unwrap();
                    with_outcome(charge_on(&idempotency, &mut tx, &order)).await
                }
            });
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(!duplicate.is_finished());
            first.commit().await.unwrap();
            assert_eq!(duplicate.await.unwrap(), (Ok(250), Some(Outcome::Replayed)), "{level}, {mysql}");
        }
    }
}

#[tokio::test]
async fn the_statements_for_mysql_do_the_same() {
    let Shop { idempotency, store, pool } = &shop_for(LEVELS[0], true).await;
    let order = Order::new("o-1", 250);
    // Not inside a transaction.
    let mut connection = pool.acquire().await.unwrap();
    assert_eq!(charge_on(idempotency, &mut connection, &order).await, Failure::code("transaction"));
    assert_eq!(postings(pool).await, 0);
    connection.execute("BEGIN; SET innodb_lock_wait_timeout = 77").await.unwrap();
    let answer = with_outcome(charge_on(idempotency, &mut connection, &order)).await;
    assert_eq!(answer, (Ok(250), Some(Outcome::Executed)));
    // A duplicate waits for a second at least, which is the least that MySQL can be told.
    let mut second = pool.acquire().await.unwrap();
    second.execute("BEGIN; SET innodb_lock_wait_timeout = 77").await.unwrap();
    let call = idempotency.operation("charge").wait(Duration::from_millis(100)).key("o-1");
    let waiting = call.argument("order", &order).run_in(&mut *second, async |_, _| Ok::<u64, Failure>(1));
    assert_eq!(waiting.await, Failure::code("in-progress, retryable"));
    connection.execute("COMMIT").await.unwrap();
    let answer = with_outcome(charge_on(idempotency, &mut second, &order)).await;
    assert_eq!(answer, (Ok(250), Some(Outcome::Replayed)));
    let timeout: u64 =
        sqlx::query_scalar("SELECT @@innodb_lock_wait_timeout").fetch_one(&mut *second).await.unwrap();
    assert_eq!(timeout, 77, "the caller's own setting is as it was");
    assert_eq!((postings(pool).await, tests::records(store).await.len()), (1, 1));
}

#[tokio::test]
async fn a_body_that_a_deadlock_has_undone_gives_its_own_error() {
    let Shop { idempotency, store, pool } = &shop(LEVELS[0]).await;
    pool.execute("CREATE TABLE stock (id int PRIMARY KEY, pieces int)").await.unwrap();
    pool.execute("INSERT INTO stock VALUES (1, 5), (2, 5)").await.unwrap();
    let mut other = pool.begin().await.unwrap();
    // The heavier transaction survives.
    other.execute("INSERT INTO postings VALUES ('a', 1), ('b', 1), ('c', 1)").await.unwrap();
    other.execute("UPDATE stock SET pieces = 1 WHERE id = 1").await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let (locked, wait_for_lock) = tokio::sync::oneshot::channel();
    let victim = call.run_in(&mut tx, async |tx, _| {
        tx.execute("UPDATE stock SET pieces = 1 WHERE id = 2").await?;
        locked.send(()).unwrap();
        tx.execute("UPDATE stock SET pieces = 1 WHERE id = 1").await?;
        Ok::<u64, Failure>(1)
    });
    let killer = async {
        wait_for_lock.await.unwrap();
        other.execute("UPDATE stock SET pieces = 1 WHERE id = 2").await.map(drop)
    };
    let (victim, killer) = tokio::join!(victim, killer);
    killer.unwrap();
    assert!(matches!(victim, Err(Failure::Database(_))), "{victim:?}");
    other.rollback().await.unwrap();
    tx.rollback().await.unwrap();
    assert!(tests::records(store).await.is_empty());
}

#[tokio::test]
async fn a_statement_that_commits_by_itself_has_ended_the_transaction() {
    let Shop { idempotency, store, pool } = &shop(LEVELS[0]).await;
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let answer = call.run_in(&mut tx, async |tx, _| {
        post(&mut *tx, &Order::new("o-1", 1)).await?;
        tx.execute("CREATE TABLE another (id int)").await?;
        Ok::<u64, Failure>(1)
    });
    assert_eq!(answer.await, Failure::code("transaction"));
    assert!(tests::only_record(store).await.state.is_abandoned());
}

#[tokio::test]
async fn a_call_costs_at_most_five_statements() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let mut connection = pool.acquire().await.unwrap();
    let mut statements = 0;
    for n in 0..3 {
        let asked: (String, String) =
            sqlx::query_as("SHOW SESSION STATUS LIKE 'Questions'").fetch_one(&mut *connection).await.unwrap();
        let asked: i64 = asked.1.parse().unwrap();
        // The first time, statements are prepared.
        if n > 1 {
            let more = asked - statements - 4;
            assert!(more <= 5, "{more} statements more");
        }
        statements = asked;
        connection.execute("BEGIN").await.unwrap();
        charge_on(idempotency, &mut connection, &Order::new(&format!("o-{n}"), 1)).await.unwrap();
        connection.execute("COMMIT").await.unwrap();
    }
}
