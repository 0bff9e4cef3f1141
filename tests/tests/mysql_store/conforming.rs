//! The promises that every store makes, by the server's clock.

use idempotent_runtime::stores::SqlColumn;
use idempotent_runtime::testing::conformance::{self, Subject};
use tests::agreement::{Time, agree};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms() {
    conformance::run(Subject::new(store("conforming").await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_procedures_and_with_other_names() {
    let url = server().database("procedures");
    let store = builder(&url.replace("mysql://", "mariadb://"))
        .table("procedures.Select")
        .column(SqlColumn::Owner, "who")
        .column(SqlColumn::LeaseUntil, "group")
        .procedures(true);
    let store = store.open().await.unwrap();
    conformance::run(Subject::new(store)).await;
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory() {
    let store = store("agreement").await;
    for seed in (0..6).chain([1029]) {
        agree(&store, &Time::Real, seed).await;
    }
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory_by_procedures() {
    let store = builder(&server().database("agreement_by_procedures")).procedures(true).open().await.unwrap();
    for seed in [100, 101, 2024] {
        agree(&store, &Time::Real, seed).await;
    }
}
