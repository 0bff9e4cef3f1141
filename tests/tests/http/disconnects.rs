//! Clients that go away, timeouts, and the end of the server.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use tower_http::timeout::TimeoutLayer;

use crate::support::{Server, Shop, layer, problem, routes, seen, slow};

#[tokio::test]
async fn a_client_that_goes_away_does_not_interrupt_the_handler() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = || server.post("/slow").header("idempotency-key", "a");
    let gone = tokio::spawn(seen(request()));
    shop.begun.notified().await;
    gone.abort();
    assert_eq!(problem(request()).await, (409, "in-progress".to_owned()));
    shop.finish.notify_one();
    let (status, replayed, content) = loop {
        let answer = seen(request()).await;
        if answer.0 != 409 {
            break answer;
        }
    };
    assert_eq!((status, replayed, content.as_str()), (200, true, "slow 1"));
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn a_timeout_outside_does_not_interrupt_the_handler() {
    let shop = Shop::default();
    let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(50));
    let server = Server::start(routes(&shop, layer(|builder| builder)).layer(timeout)).await;
    let request = || server.post("/slow").header("idempotency-key", "a");
    assert_eq!(seen(request()).await.0, 408);
    shop.finish.notify_one();
    while seen(request()).await.0 != 200 {}
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn a_timeout_inside_is_a_response_like_others() {
    for (status, stored) in [(StatusCode::GATEWAY_TIMEOUT, true), (StatusCode::REQUEST_TIMEOUT, false)] {
        let shop = Shop::default();
        let timeout = TimeoutLayer::with_status_code(status, Duration::from_millis(10));
        let app = Router::new().route("/slow", post(slow)).layer(timeout).layer(layer(|builder| builder));
        let server = Server::start(app.with_state(shop.clone())).await;
        let request = || server.post("/slow").header("idempotency-key", "a");
        assert_eq!(seen(request()).await.0, status);
        assert_eq!(seen(request()).await.1, stored);
    }
}

#[tokio::test]
async fn the_end_waits_for_handlers_whose_clients_have_gone() {
    let shop = Shop::default();
    let layer = layer(|builder| builder);
    let server = Server::start(routes(&shop, layer.clone())).await;
    let gone = tokio::spawn(seen(server.post("/slow").header("idempotency-key", "a")));
    shop.begun.notified().await;
    gone.abort();
    assert_eq!(layer.in_flight(), 1);

    let mut end = Box::pin(layer.shutdown());
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut end).await.is_err());
    shop.finish.notify_one();
    end.await;
    assert_eq!(layer.in_flight(), 0);
    assert!(seen(server.post("/slow").header("idempotency-key", "a")).await.1);
}

#[tokio::test]
async fn handlers_at_work_are_bounded() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.max_in_flight(1)))).await;
    let gone = tokio::spawn(seen(server.post("/slow").header("idempotency-key", "a")));
    shop.begun.notified().await;
    gone.abort();
    let refused = server.post("/orders").header("idempotency-key", "b").send().await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    // What has no key is none of the layer's business.
    assert_eq!(seen(server.post("/orders")).await.0, 201);
    shop.finish.notify_one();
    while seen(server.post("/orders").header("idempotency-key", "b")).await.0 != 201 {}
}

/// A handler that takes longer than its lease keeps its key.
#[tokio::test]
async fn a_long_handler_keeps_its_key() {
    let shop = Shop::default();
    let lease = Duration::from_millis(100);
    let server = Server::start(routes(&shop, layer(|builder| builder.lease(lease)))).await;
    let request = || server.post("/slow").header("idempotency-key", "a");
    let first = tokio::spawn(seen(request()));
    shop.begun.notified().await;
    tokio::time::sleep(4 * lease).await;
    assert_eq!(problem(request()).await, (409, "in-progress".to_owned()));
    shop.finish.notify_one();
    assert_eq!(first.await.unwrap().0, 200);
}
