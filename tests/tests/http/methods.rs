//! Which requests are protected.

use axum::Router;
use axum::http::Method;
use axum::routing::{get, post};
use idempotent_runtime::http::{IdempotencyLayer, IdempotencyLayerBuilder};
use tower_http::cors::CorsLayer;

use crate::support::{Server, Shop, client, layer, order, routes, seen};

#[tokio::test]
async fn safe_methods_run_each_time_whatever_their_key_is() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let get = |key: &str| client().get(server.url("/orders")).header("idempotency-key", key);
    for request in
        [get("a"), server.post("/orders").header("idempotency-key", "a"), get("a"), get("\"malformed")]
    {
        let (status, replayed, _) = seen(request).await;
        assert_eq!((status, replayed), (201, false));
    }
    let head = client().head(server.url("/orders")).header("idempotency-key", "a").send().await.unwrap();
    assert_eq!(head.status(), 201);
    assert!(head.headers().contains_key("etag"));
    assert!(head.text().await.unwrap().is_empty());
}

#[tokio::test]
async fn put_and_delete_are_protected_when_asked_for() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let put = |server: &Server| client().put(server.url("/orders")).header("idempotency-key", "a");
    seen(put(&server)).await;
    assert!(!seen(put(&server)).await.1);

    let server =
        Server::start(routes(&shop, layer(|builder| builder.methods([Method::PUT, Method::GET])))).await;
    seen(put(&server)).await;
    assert!(seen(put(&server)).await.1);
    for _ in 0..2 {
        assert!(!seen(client().get(server.url("/orders")).header("idempotency-key", "a")).await.1);
    }
}

#[tokio::test]
async fn a_preflight_is_answered_by_the_cors_layer() {
    let shop = Shop::default();
    let app = routes(&shop, layer(IdempotencyLayerBuilder::required)).layer(CorsLayer::permissive());
    let server = Server::start(app).await;
    let preflight = client()
        .request(Method::OPTIONS, server.url("/orders"))
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "idempotency-key");
    let response = preflight.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("access-control-allow-headers"));
}

#[tokio::test]
async fn a_request_for_another_protocol_is_let_through() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    for _ in 0..2 {
        let upgrade = server.post("/orders").header("idempotency-key", "a").header("upgrade", "websocket");
        assert!(!seen(upgrade).await.1);
        let grpc = server
            .post("/orders")
            .header("idempotency-key", "b")
            .header("content-type", "application/grpc+proto");
        assert!(!seen(grpc).await.1);
    }
    assert_eq!(shop.handled(), 4);
}

/// As Java's client does with everything that it sends without TLS.
#[tokio::test]
async fn a_client_that_offers_http_2_is_protected_as_any_other() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    for replayed in [false, true] {
        let offer = server.post("/orders").header("idempotency-key", "a").header("upgrade", "h2c");
        let offer = offer
            .header("connection", "Upgrade, HTTP2-Settings")
            .header("http2-settings", "AAMAAABkAAQAAP__");
        assert_eq!(seen(offer).await.1, replayed);
    }
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn what_no_route_takes_gives_its_key_back() {
    let shop = Shop::default();
    let late = |app: Router<Shop>, layer: IdempotencyLayer| app.layer(layer).with_state(shop.clone());
    let app = Router::new().route("/reports", get(order));
    let server = Server::start(late(app, layer(|builder| builder))).await;
    let request = |path: &str| server.post(path).header("idempotency-key", "a");
    for (path, expected) in [("/nowhere", 404), ("/reports", 405)] {
        for _ in 0..2 {
            let (status, replayed, _) = seen(request(path)).await;
            assert_eq!((status, replayed), (expected, false), "{path}");
        }
    }
    // With `route_layer` it is not even asked.
    let app =
        Router::new().route("/orders", post(order)).route_layer(layer(IdempotencyLayerBuilder::required));
    let server = Server::start(app.with_state(shop.clone())).await;
    assert_eq!(seen(server.post("/nowhere")).await.0, 404);
}

#[tokio::test]
async fn a_key_that_means_nothing_is_told_of_when_asked_for() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(IdempotencyLayerBuilder::signal_ignored))).await;
    let get = client().get(server.url("/orders")).header("idempotency-key", "a").send().await.unwrap();
    assert_eq!(get.headers()["idempotency-status"], "ignored");
    assert!(
        !client()
            .get(server.url("/orders"))
            .send()
            .await
            .unwrap()
            .headers()
            .contains_key("idempotency-status")
    );
}
