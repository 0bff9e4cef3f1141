//! The same key with another request.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::routing::post;
use idempotent_runtime::http::{Compared, KeyScope};

use crate::support::{Server, Shop, client, layer, order, problem, routes, seen};

const REUSED: (u16, &str) = (422, "key-reused");

async fn refused(request: reqwest::RequestBuilder) {
    let (status, code) = problem(request).await;
    assert_eq!((status, code.as_str()), REUSED);
}

#[tokio::test]
async fn another_content_is_refused_and_the_record_stays() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = |content: &'static str| server.post("/orders").header("idempotency-key", "a").body(content);
    seen(request("{}")).await;
    for other in ["{ }", "", "[]"] {
        refused(request(other)).await;
    }
    assert!(seen(request("{}")).await.1);
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn no_content_and_empty_content_are_the_same_and_an_empty_object_is_not() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = || server.post("/orders").header("idempotency-key", "a");
    seen(request()).await;
    assert!(seen(request().body("")).await.1);
    refused(request().body("{}")).await;
}

#[tokio::test]
async fn another_query_is_refused() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = |query: &str| server.post(&format!("/orders{query}")).header("idempotency-key", "a");
    seen(request("?q=a")).await;
    for other in ["", "?", "?q=b", "?q=a&dry=1"] {
        refused(request(other)).await;
    }
    assert!(seen(request("?q=a")).await.1);
}

#[tokio::test]
async fn another_media_type_is_refused_and_its_parameters_do_not_matter() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = |kind: &str| {
        server.post("/orders").header("idempotency-key", "a").header("content-type", kind).body("{}")
    };
    seen(request("application/json")).await;
    assert!(seen(request("Application/JSON; charset=utf-8")).await.1);
    refused(request("application/x-www-form-urlencoded")).await;
}

#[tokio::test]
async fn other_headers_do_not_matter_unless_they_are_named() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let request = |server: &Server, token: &str, accept: &'static str| {
        server.post("/orders").header("idempotency-key", "a").bearer_auth(token).header("accept", accept)
    };
    seen(request(&server, "old", "application/json")).await;
    assert!(seen(request(&server, "refreshed", "text/html")).await.1);

    let compared = Compared::whole().and_header(&header::ACCEPT);
    let server = Server::start(routes(&shop, layer(|builder| builder.compared(compared)))).await;
    seen(request(&server, "old", "application/json")).await;
    assert!(seen(request(&server, "refreshed", "application/json")).await.1);
    refused(request(&server, "old", "text/html")).await;
}

#[tokio::test]
async fn another_operation_is_another_request_unless_the_scope_is_the_whole_api() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let key = |request: reqwest::RequestBuilder| request.header("idempotency-key", "a");
    let requests = |server: &Server| {
        [
            server.post("/tickets/1"),
            server.post("/tickets/2"),
            server.post("/orders"),
            client().patch(server.url("/orders")),
        ]
    };
    for request in requests(&server) {
        assert!(!seen(key(request)).await.1);
    }
    assert_eq!(shop.handled(), 4);

    let server = Server::start(routes(&shop, layer(|builder| builder.scope(KeyScope::Principal)))).await;
    let [first, others @ ..] = requests(&server);
    assert!(!seen(key(first)).await.1);
    for other in others {
        refused(key(other)).await;
    }
}

#[tokio::test]
async fn the_path_is_the_whole_one_under_nested_routers() {
    let shop = Shop::default();
    let layer = layer(|builder| builder);
    let nested = || Router::new().route("/orders", post(order)).layer(layer.clone());
    let app = Router::new().nest("/eu", nested()).nest("/us", nested()).with_state(shop.clone());
    let server = Server::start(app).await;
    for path in ["/eu/orders", "/us/orders"] {
        assert!(!seen(server.post(path).header("idempotency-key", "a")).await.1, "{path}");
        assert!(seen(server.post(path).header("idempotency-key", "a")).await.1, "{path}");
    }
    assert_eq!(shop.handled(), 2);
}

#[tokio::test]
async fn how_the_content_arrives_does_not_matter() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let head = "POST /orders HTTP/1.1\r\nhost: shop\r\nconnection: close\r\nidempotency-key: a\r\n";
    let whole = format!("{head}content-length: 6\r\n\r\nabcdef");
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n1\r\na\r\n5\r\nbcdef\r\n0\r\n\r\n");
    let others = format!("{head}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
    assert!(!server.raw(whole.as_bytes()).await.contains("idempotent-replayed"));
    for request in [chunked, others, whole] {
        assert!(server.raw(request.as_bytes()).await.contains("idempotent-replayed: true"));
    }
}

#[tokio::test]
async fn what_is_compared_can_be_chosen() {
    let shop = Shop::default();
    let amount = |content: &[u8]| {
        let content: serde_json::Value = serde_json::from_slice(content).unwrap_or_default();
        content["amount"].to_string().into_bytes()
    };
    let compared = Compared::chosen(move |_, content| amount(content));
    let server = Server::start(routes(&shop, layer(|builder| builder.compared(compared)))).await;
    let request = |content: &'static str| server.post("/orders").header("idempotency-key", "a").body(content);
    seen(request("{\"amount\":1,\"at\":10}")).await;
    assert!(seen(request("{\"amount\":1,\"at\":11}")).await.1);
    refused(request("{\"amount\":2,\"at\":11}")).await;

    let server = Server::start(routes(&shop, layer(|builder| builder.compared(Compared::key_only())))).await;
    let request =
        |content: &'static str| server.post("/orders?a").header("idempotency-key", "a").body(content);
    seen(request("one")).await;
    assert!(seen(request("another")).await.1);
}

/// Where one part ends and the next begins cannot be shifted.
#[tokio::test]
async fn the_parts_of_a_request_do_not_run_into_each_other() {
    let shop = Shop::default();
    let tag = HeaderName::from_static("x-tag");
    let compared = Compared::whole().and_header(&tag);
    let server = Server::start(routes(&shop, layer(|builder| builder.compared(compared)))).await;
    let request = |tag: &'static str, content: &'static str| {
        server.post("/orders").header("idempotency-key", "a").header("x-tag", tag).body(content)
    };
    seen(request("ab", "c")).await;
    refused(request("a", "bc")).await;
    refused(request("abc", "")).await;
}
