//! The promises that every store makes, through every kind of connection.

use std::time::Duration;

use idempotent_runtime::stores::RedisStore;
use idempotent_runtime::testing::conformance::{self, Subject};
use tests::agreement::{Time, agree};
use tests::servers::redis::{Cluster, Sentinels};

use crate::support::*;

fn subject(store: RedisStore) -> Subject {
    Subject::new(store).tick(Duration::from_millis(60))
}

fn client(url: &str) -> redis::Client {
    redis::Client::open(url).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_plain_commands() {
    conformance::run(subject(fresh().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_by_scripts_alone() {
    // No replica at all has to know: the same as nothing, but for the commands that are used.
    let builder =
        RedisStore::builder(fresh_url()).prefix("scripts*[:").wait_replicas(0, Duration::from_secs(1));
    conformance::run(subject(builder.open().await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_on_a_manager() {
    let client = client(&fresh_url());
    let manager = client.get_connection_manager().await.unwrap();
    let builder = RedisStore::from_manager(manager).prefix("manager:").notifications([client]);
    conformance::run(subject(builder.open().await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_on_a_connection_without_notifications() {
    let connection = client(&fresh_url()).get_multiplexed_async_connection().await.unwrap();
    let store = RedisStore::from_connection(connection).prefix("connection:").open().await.unwrap();
    conformance::run(subject(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_on_a_cluster() {
    let cluster = Cluster::start();
    conformance::run(subject(RedisStore::open(cluster.url()).await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_conforms_through_sentinels() {
    let sentinels = Sentinels::start();
    conformance::run(subject(RedisStore::open(sentinels.url()).await.unwrap())).await;
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory() {
    let store = fresh().await;
    for seed in (0..6).chain([1029]) {
        agree(&store, &Time::Real, seed).await;
    }
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory_by_scripts_alone() {
    let builder =
        RedisStore::builder(fresh_url()).prefix("agreement:").wait_replicas(0, Duration::from_secs(1));
    let store = builder.open().await.unwrap();
    for seed in [100, 101, 2024] {
        agree(&store, &Time::Real, seed).await;
    }
}
