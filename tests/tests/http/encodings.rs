//! Compressed responses, with the layers in both orders.

use axum::Router;
use axum::routing::post;
use tower_http::compression::CompressionLayer;

use crate::support::{Server, layer};

const TEXT: &str =
    "the same line again and again\nthe same line again and again\nthe same line again and again\n";

async fn text() -> &'static str {
    TEXT
}

/// What a client that takes `accept` is given: the encoding, and what it reads.
async fn read(server: &Server, accept: Option<&str>) -> (Option<String>, String, bool) {
    let client = reqwest::Client::builder().gzip(accept.is_some()).build().unwrap();
    let request = client.post(server.url("/")).header("idempotency-key", "a");
    let raw = crate::support::client().post(server.url("/")).header("idempotency-key", "a");
    let raw = accept.map_or_else(
        || raw.try_clone().unwrap(),
        |accept| raw.try_clone().unwrap().header("accept-encoding", accept),
    );
    let encoding = raw
        .send()
        .await
        .unwrap()
        .headers()
        .get("content-encoding")
        .map(|value| value.to_str().unwrap().to_owned());
    let response = request.send().await.unwrap();
    let vary = response.headers().contains_key("vary");
    (encoding, response.text().await.unwrap(), vary)
}

#[tokio::test]
async fn compression_outside_encodes_for_each_client() {
    let app = Router::new()
        .route("/", post(text))
        .layer(layer(|builder| builder))
        .layer(CompressionLayer::new().compress_when(tower_http::compression::predicate::SizeAbove::new(0)));
    let server = Server::start(app).await;
    for accept in [Some("gzip"), None, Some("gzip")] {
        let (encoding, content, vary) = read(&server, accept).await;
        assert_eq!(encoding.as_deref(), accept);
        assert_eq!(content, TEXT);
        assert!(vary || accept.is_none());
    }
}

#[tokio::test]
async fn compression_inside_never_gives_a_client_what_it_cannot_read() {
    let app = Router::new()
        .route("/", post(text))
        .layer(CompressionLayer::new().compress_when(tower_http::compression::predicate::SizeAbove::new(0)))
        .layer(layer(|builder| builder));
    let server = Server::start(app).await;
    let request = |accept: &'static str| {
        let request = server.post("/").header("idempotency-key", "a");
        if accept.is_empty() { request } else { request.header("accept-encoding", accept) }
    };
    request("gzip").send().await.unwrap();
    // A compressed response has no length beforehand, so only its head was kept.
    for accept in ["gzip", "", "identity", "gzip;q=0"] {
        let retry = request(accept).send().await.unwrap();
        assert!(retry.bytes().await.unwrap().is_empty(), "{accept}");
    }
}

/// A handler that has encoded its content itself, with a length.
#[tokio::test]
async fn a_stored_encoding_is_for_those_who_take_it() {
    async fn encoded() -> ([(&'static str, &'static str); 1], &'static str) {
        ([("content-encoding", "br")], "as if compressed")
    }
    let server = Server::start(Router::new().route("/", post(encoded)).layer(layer(|builder| builder))).await;
    let request = |accept: &'static str| {
        server.post("/").header("idempotency-key", "a").header("accept-encoding", accept)
    };
    request("br").send().await.unwrap();
    for (accept, takes) in [
        ("gzip, br", true),
        ("*", true),
        ("BR;q=0.5", true),
        ("*;q=0, br", true),
        ("gzip", false),
        ("br;q=0", false),
        ("*, br;Q=0.0", false),
        ("*;q=0", false),
    ] {
        let retry = request(accept).send().await.unwrap();
        assert_eq!(retry.headers().contains_key("content-encoding"), takes, "{accept}");
        assert_eq!(retry.headers().contains_key("idempotent-replay"), !takes, "{accept}");
        assert_eq!(retry.text().await.unwrap().is_empty(), !takes, "{accept}");
    }
}
