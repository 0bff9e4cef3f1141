//! The promises that every store makes.

use std::time::Duration;

use idempotent_runtime::store::Store;
use idempotent_runtime::stores::{PostgresStore, SqlColumn};
use idempotent_runtime::testing::conformance::{self, Subject};
use tests::agreement::{Time, agree};
use tests::servers::pgbouncer::PgBouncer;
use tests::servers::postgres::shared;

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms() {
    let store = store().await;
    conformance::run(Subject::new(store).tick(Duration::from_millis(50))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_in_batches() {
    let store = PostgresStore::builder(pool(&shared().database())).batch(64).open().await.unwrap();
    conformance::run(Subject::new(store).tick(Duration::from_millis(50))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_plain_statements_with_other_names() {
    let url = shared().database();
    shared().psql(&url, "CREATE SCHEMA \"Shop\"");
    let builder = PostgresStore::builder(pool(&url)).table("Shop.Select").column(SqlColumn::Owner, "user");
    let store = builder.prepared_statements(false).channel("calls.of_shop").open().await.unwrap();
    conformance::run(Subject::new(store).tick(Duration::from_millis(50))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_where_transactions_are_serializable_by_default() {
    for level in ["serializable"] {
        let url = shared().database();
        let name = url.rsplit('/').next().unwrap();
        shared().psql(&url, &format!("ALTER DATABASE {name} SET default_transaction_isolation = '{level}'"));
        let store = PostgresStore::new(pool(&url));
        conformance::run(Subject::new(store).tick(Duration::from_millis(50))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_behind_a_proxy_that_gives_each_statement_another_connection() {
    let proxy = PgBouncer::start(shared());
    let url = proxy.url(&shared().database());
    let store = PostgresStore::builder(pool(&url)).prepared_statements(false).open().await.unwrap();
    // A notification that never arrives is no reason to wait for one.
    assert!(store.watch(&key("1")).await.unwrap().is_none());
    conformance::run(Subject::new(store).tick(Duration::from_millis(50))).await;
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory() {
    let store = store().await;
    for seed in (0..6).chain([1029]) {
        agree(&store, &Time::Real, seed).await;
    }
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory_in_batches() {
    let store = PostgresStore::builder(pool(&shared().database())).batch(8).open().await.unwrap();
    for seed in [100, 101, 2024] {
        agree(&store, &Time::Real, seed).await;
    }
}
