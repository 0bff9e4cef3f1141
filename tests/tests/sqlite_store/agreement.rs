//! Random histories, on which this store and the one in memory have to agree.

use idempotent_runtime::stores::{SqliteStore, Synchronous};
use idempotent_runtime::testing::ManualClock;
use tests::agreement::{Time, agree};

use crate::support::*;

#[tokio::test]
async fn it_agrees_with_the_store_in_memory() {
    let folder = Folder::new();
    for seed in 0..40 {
        let clock = ManualClock::default();
        let store = SqliteStore::builder(folder.path().join(format!("{seed}.db")));
        let store = store.synchronous(Synchronous::Normal).clock(clock.clone()).open().await.unwrap();
        agree(&store, &Time::Manual(clock), seed).await;
    }
}

#[tokio::test]
async fn it_agrees_by_the_clock_on_the_wall() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    for seed in 0..3 {
        agree(&store, &Time::Real, seed).await;
    }
}
