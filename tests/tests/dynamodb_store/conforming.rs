//! The promises that every store makes.

use std::time::Duration;

use idempotent_runtime::stores::DynamoDbAttribute;
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::testing::conformance::{self, Subject};
use tests::agreement::{Time, agree};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_a_manual_clock() {
    let clock = ManualClock::default();
    let store = builder().clock(clock.clone()).open().await.unwrap();
    conformance::run(Subject::new(store).clock(clock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_the_clock_on_the_wall() {
    let store = builder().open().await.unwrap();
    conformance::run(Subject::new(store).tick(Duration::from_millis(100))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_in_a_table_of_many_things() {
    let clock = ManualClock::default();
    let builder = builder().attribute(DynamoDbAttribute::Key, "PK").sort_key("SK", "idempotency");
    let builder =
        builder.attribute(DynamoDbAttribute::State, "table").attribute(DynamoDbAttribute::Ttl, "a.b c");
    let store = builder.clock(clock.clone()).open().await.unwrap();
    conformance::run(Subject::new(store).clock(clock)).await;
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory() {
    for seed in 0..10 {
        let clock = ManualClock::default();
        let store = builder().clock(clock.clone()).open().await.unwrap();
        agree(&store, &Time::Manual(clock), seed).await;
    }
}
