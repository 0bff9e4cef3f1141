//! Requests with one key at the same time.

use futures_util::future::join_all;
use idempotent_runtime::http::Principal;

use crate::support::{SECOND, Server, Shop, layer, problem, routes, seen};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_at_once_one_runs() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let all = join_all((0..50).map(|_| seen(server.post("/orders").header("idempotency-key", "a")))).await;
    assert_eq!(shop.handled(), 1);
    assert_eq!(all.iter().filter(|(status, replayed, _)| *status == 201 && !replayed).count(), 1);
    assert!(all.iter().all(|(status, _, _)| matches!(status, 201 | 409)), "{all:?}");
    assert!(
        seen(server.post("/orders").header("idempotency-key", "a")).await.1,
        "a 409 is not what is stored"
    );
}

#[tokio::test]
async fn a_duplicate_of_a_running_request_is_told_when_to_come_again() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = || server.post("/slow").header("idempotency-key", "a");
    let first = tokio::spawn(seen(request()));
    shop.begun.notified().await;

    let busy = request().send().await.unwrap();
    assert_eq!(busy.status(), 409);
    let seconds: u64 = busy.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds}");
    assert_eq!(problem(request()).await, (409, "in-progress".to_owned()));
    // Also while it runs, another content is another request.
    assert_eq!(problem(request().body("{}")).await, (422, "key-reused".to_owned()));

    shop.finish.notify_one();
    assert_eq!(first.await.unwrap(), (200, false, "slow 1".to_owned()));
    assert_eq!(seen(request()).await, (200, true, "slow 1".to_owned()));
}

#[tokio::test]
async fn a_duplicate_that_may_wait_gets_the_response() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.wait(30 * SECOND)))).await;
    let request = || server.post("/slow").header("idempotency-key", "a");
    let first = tokio::spawn(seen(request()));
    shop.begun.notified().await;
    let waiting = tokio::spawn(seen(request()));
    let gone = tokio::spawn(seen(request()));
    tokio::task::yield_now().await;
    gone.abort();
    shop.finish.notify_one();
    assert!(!first.await.unwrap().1);
    assert_eq!(waiting.await.unwrap(), (200, true, "slow 1".to_owned()));
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn a_wait_that_is_over_is_a_409_and_runs_nothing() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.wait(SECOND / 100)))).await;
    let request = || server.post("/slow").header("idempotency-key", "a");
    let first = tokio::spawn(seen(request()));
    shop.begun.notified().await;
    assert_eq!(problem(request()).await, (409, "in-progress".to_owned()));
    shop.finish.notify_one();
    first.await.unwrap();
    assert_eq!(shop.handled(), 1);
}

/// While one key waits, others go on.
#[tokio::test]
async fn keys_do_not_wait_for_each_other() {
    let shop = Shop::default();
    let idempotency = crate::support::idempotency();
    let layer = idempotent_runtime::http::IdempotencyLayer::builder(&idempotency, Principal::single_tenant());
    let server = Server::start(routes(&shop, layer.build().unwrap())).await;
    let first = tokio::spawn(seen(server.post("/slow").header("idempotency-key", "a")));
    shop.begun.notified().await;
    for key in 0..100 {
        assert_eq!(seen(server.post("/orders").header("idempotency-key", format!("b{key}"))).await.0, 201);
    }
    shop.finish.notify_one();
    first.await.unwrap();
}
