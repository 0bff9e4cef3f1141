//! The promises that every store makes.

use std::time::Duration;

use idempotent_runtime::stores::SqliteStore;
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::testing::conformance::{self, Subject};

use crate::support::Folder;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_a_manual_clock() {
    let folder = Folder::new();
    let clock = ManualClock::default();
    let store = SqliteStore::builder(folder.file()).clock(clock.clone()).open().await.unwrap();
    conformance::run(Subject::new(store).clock(clock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_the_clock_on_the_wall() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    conformance::run(Subject::new(store).tick(Duration::from_millis(50))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_in_batches_of_one_and_with_other_names() {
    let folder = Folder::new();
    let clock = ManualClock::default();
    let builder = SqliteStore::builder(folder.file()).table("Select").max_batch(0);
    let store = builder.clock(clock.clone()).open().await.unwrap();
    conformance::run(Subject::new(store).clock(clock)).await;
}
