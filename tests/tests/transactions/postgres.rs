//! PostgreSQL.

use std::time::Duration;

use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Idempotency, Outcome, with_outcome};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Acquire, Executor, PgConnection, PgPool, Postgres};
use tests::Order;
use tests::servers::postgres::shared;

use self::common::{charge_on, postings};
use crate::failure::Failure;

#[path = "common.rs"]
mod common;
#[path = "on_a_server.rs"]
mod on_a_server;
#[path = "random.rs"]
mod random;

pub(crate) type Db = Postgres;
pub(crate) type Connection = PgConnection;
pub(crate) type Pool = PgPool;

pub(crate) const SELECT: &str = "SELECT cents FROM postings WHERE id = $1";
pub(crate) const INSERT: &str = "INSERT INTO postings VALUES ($1, $2)";

/// The first is the server's own.
pub(crate) const LEVELS: &[&str] = &["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Whether a body that rolls back by itself is told from one that commits.
pub(crate) const TELLS_ROLLBACK: bool = false;

/// A database with a table of postings and one for records, and the handle for it.
pub(crate) struct Shop {
    pub(crate) idempotency: Idempotency,
    pub(crate) store: PostgresStore,
    pub(crate) pool: PgPool,
}

/// One whose transactions are of an isolation level.
pub(crate) async fn shop(level: &'static str) -> Shop {
    let pool = PgPoolOptions::new().max_connections(24).after_connect(move |connection, _| {
        Box::pin(async move {
            let set = format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}");
            connection.execute(sqlx::AssertSqlSafe(set)).await.map(drop)
        })
    });
    let pool = pool.connect(&shared().database()).await.unwrap();
    pool.execute("CREATE TABLE postings (id text, cents bigint)").await.unwrap();
    let store = PostgresStore::builder(pool.clone()).open().await.unwrap();
    Shop { idempotency: Idempotency::new(store.clone()), store, pool }
}

/// A database without the table of records.
pub(crate) async fn other_database() -> PgPool {
    PgPool::connect(&shared().database()).await.unwrap()
}

/// A store that has not looked at its database.
pub(crate) fn unopened_store(pool: PgPool) -> PostgresStore {
    PostgresStore::new(pool)
}

#[tokio::test]
async fn under_repeatable_read_a_waiting_duplicate_is_told_to_try_another_transaction() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let Shop { idempotency, pool, .. } = &shop(level).await;
        let order = Order::new("o-1", 250);
        let mut first = pool.begin().await.unwrap();
        charge_on(idempotency, &mut first, &order).await.unwrap();
        let duplicate = tokio::spawn({
            let (idempotency, pool, order) = (idempotency.clone(), pool.clone(), order.clone());
            async move {
                let mut tx = pool.begin().await.unwrap();
                charge_on(&idempotency, &mut tx, &order).await
            }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        first.commit().await.unwrap();
        let refused = Err(Failure::Idempotency("store-unavailable, retryable".into()));
        assert_eq!(duplicate.await.unwrap(), refused, "{level}");
    }
}

#[tokio::test]
async fn a_call_costs_at_most_five_statements() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    pool.execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
    let count = "SELECT sum(calls)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
                 WHERE d.datname = current_database() AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE 'SET SESSION%'";
    let statements = async || -> i64 { sqlx::query_scalar(count).fetch_one(pool).await.unwrap() };
    let mut connection = pool.acquire().await.unwrap();
    // The first call of a connection prepares two of them.
    for (id, body, most) in [("o-0", 1, 9), ("o-1", 1, 5), ("o-1", 0, 5)] {
        let before = statements().await;
        let mut tx = connection.begin().await.unwrap();
        charge_on(idempotency, &mut tx, &Order::new(id, 1)).await.unwrap();
        tx.commit().await.unwrap();
        let more = statements().await - before - 2 - body;
        assert!(more <= most, "{more} statements more ({id}, {body})");
    }
}

#[tokio::test]
async fn a_server_that_crashes_before_the_commit_has_seen_nothing() {
    use tests::servers::{free_port, postgres::Postgres};
    let port = free_port();
    let server = Postgres::resume(Postgres::cluster(), port, &[]);
    let url = server.url("postgres");
    let pool = PgPool::connect(&url).await.unwrap();
    pool.execute("CREATE TABLE postings (id text, cents bigint)").await.unwrap();
    let idempotency = Idempotency::new(PostgresStore::builder(pool.clone()).open().await.unwrap());
    let order = Order::new("o-1", 250);
    let mut tx = pool.begin().await.unwrap();
    charge_on(&idempotency, &mut tx, &order).await.unwrap();
    let folder = server.end("QUIT");
    assert!(tx.commit().await.is_err());
    let _server = Postgres::resume(folder, port, &[]);
    let pool = PgPool::connect(&url).await.unwrap();
    assert_eq!(postings(&pool).await, 0);
    let mut tx = pool.begin().await.unwrap();
    let answer = with_outcome(charge_on(&idempotency, &mut tx, &order)).await;
    assert_eq!(answer, (Ok(250), Some(Outcome::Executed)));
    tx.commit().await.unwrap();
    assert_eq!(postings(&pool).await, 1);
}

#[tokio::test]
async fn the_callers_own_time_for_locks_is_left_as_it_is() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let mut first = pool.begin().await.unwrap();
    charge_on(idempotency, &mut first, &Order::new("o-1", 250)).await.unwrap();
    let mut second = pool.begin().await.unwrap();
    second.execute("SET LOCAL lock_timeout = '7s'").await.unwrap();
    let call = idempotency.operation("charge").wait(Duration::from_millis(100)).key("o-1");
    let answer = call.run_in(&mut *second, async |_, _| Ok::<u64, Failure>(1)).await;
    assert_eq!(answer, Failure::code("in-progress, retryable"));
    assert_eq!(charge_on(idempotency, &mut second, &Order::new("o-2", 1)).await, Ok(1));
    let setting: String = sqlx::query_scalar("SHOW lock_timeout").fetch_one(&mut *second).await.unwrap();
    assert_eq!(setting, "7s");
}

#[tokio::test]
async fn a_transaction_that_has_failed_already_is_of_no_use() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let mut tx = pool.begin().await.unwrap();
    let _ = tx.execute("NONSENSE").await;
    let call = idempotency.operation("charge").key("o-1");
    let answer = call.run_in(&mut *tx, async |_, _| -> Result<u64, Failure> { panic!("the body runs") });
    assert_eq!(answer.await, Failure::code("store-unavailable, retryable"));
}
