//! What a retry gets.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::routing::post;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::support::{Server, Shop, layer, routes, seen};

/// A response with all that a response may have.
fn rich() -> Response<Body> {
    let mut response = Response::new(Body::from(b"\xff\x00 not text".as_slice()));
    *response.status_mut() = StatusCode::from_u16(299).unwrap();
    let headers = response.headers_mut();
    for (name, value) in [
        ("location", "/orders/1"),
        ("etag", "\"1\""),
        ("content-type", "application/octet-stream"),
        ("content-language", "de"),
        ("last-modified", "Tue, 01 Dec 2026 00:00:00 GMT"),
        ("cache-control", "private"),
        ("x-custom", "kept"),
        ("link", "</a>; rel=next"),
        ("link", "</b>; rel=prev"),
        ("vary", "accept"),
        ("vary", "origin"),
        // Those of one exchange.
        ("set-cookie", "session=1"),
        ("set-cookie", "theme=dark"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("server-timing", "db;dur=53"),
        ("x-request-id", "7"),
        ("x-ratelimit-remaining", "3"),
        ("retry-after", "9"),
        ("age", "4"),
    ] {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.append("x-name", HeaderValue::from_bytes(b"caf\xe9").unwrap());
    // The layer's own marker is nobody else's to set.
    headers.append("idempotent-replayed", HeaderValue::from_static("yes"));
    response
}

#[tokio::test]
async fn the_response_comes_back_as_it_was_but_for_what_belongs_to_one_exchange() {
    let app = Router::new().route("/", post(|| async { rich() })).layer(layer(|builder| builder));
    let server = Server::start(app).await;
    let request = || server.post("/").header("idempotency-key", "a");
    let first = request().send().await.unwrap();
    assert!(!first.headers().contains_key("idempotent-replayed"));
    assert_eq!(first.headers().get_all("set-cookie").iter().count(), 2);

    let retry = request().send().await.unwrap();
    assert_eq!(retry.status().as_u16(), 299);
    let headers = retry.headers().clone();
    for name in
        ["location", "etag", "content-type", "content-language", "last-modified", "cache-control", "x-custom"]
    {
        assert_eq!(headers.get(name), first.headers().get(name), "{name}");
    }
    for name in ["link", "vary"] {
        let lines =
            |headers: &axum::http::HeaderMap| headers.get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(lines(&headers), lines(first.headers()), "{name}");
        assert_eq!(lines(&headers).len(), 2);
    }
    assert_eq!(headers["x-name"].as_bytes(), b"caf\xe9");
    assert_eq!(headers["idempotent-replayed"], "true");
    assert_ne!(headers["date"], "Thu, 01 Jan 1970 00:00:00 GMT", "a message is dated when it is made");
    assert_eq!(headers["content-length"], "11");
    for name in [
        "set-cookie",
        "x-hop",
        "server-timing",
        "x-request-id",
        "x-ratelimit-remaining",
        "retry-after",
        "age",
    ] {
        assert!(!headers.contains_key(name), "{name}");
    }
    assert_eq!(retry.bytes().await.unwrap(), first.bytes().await.unwrap());
}

#[tokio::test]
async fn a_thousand_retries_are_one_order() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    for retry in 0..1_000 {
        let (status, replayed, content) = seen(server.post("/orders").header("idempotency-key", "a")).await;
        assert_eq!((status, replayed, content.as_str()), (201, retry > 0, "{\"id\":1}"));
    }
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn no_content_stays_no_content() {
    let app =
        Router::new().route("/", post(|| async { StatusCode::NO_CONTENT })).layer(layer(|builder| builder));
    let server = Server::start(app).await;
    for _ in 0..2 {
        let answer = server.raw_post("/", b"idempotency-key: a\r\n").await;
        assert_eq!(answer.status, 204);
        assert!(!answer.text.contains("content-length"), "{}", answer.text);
        assert!(answer.text.ends_with("\r\n\r\n"), "{}", answer.text);
    }
}

#[tokio::test]
async fn headers_are_kept_and_dropped_as_the_application_says() {
    let layer = layer(|builder| {
        builder.keep_header(header::SET_COOKIE).drop_header(HeaderName::from_bytes(b"X-Custom").unwrap())
    });
    let server = Server::start(Router::new().route("/", post(|| async { rich() })).layer(layer)).await;
    let request = || server.post("/").header("idempotency-key", "a");
    request().send().await.unwrap();
    let retry = request().send().await.unwrap();
    assert_eq!(retry.headers().get_all("set-cookie").iter().count(), 2);
    assert!(!retry.headers().contains_key("x-custom"));
}

#[tokio::test]
async fn outer_layers_see_a_replay_as_a_fresh_response() {
    let shop = Shop::default();
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .expose_headers([HeaderName::from_static("idempotent-replayed"), header::LOCATION]);
    let server = Server::start(routes(&shop, layer(|builder| builder)).layer(cors)).await;
    for origin in ["https://a.example", "https://b.example"] {
        let request = server.post("/orders").header("idempotency-key", "a").header("origin", origin);
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["access-control-allow-origin"], origin);
        assert!(
            response.headers()["access-control-expose-headers"]
                .to_str()
                .unwrap()
                .contains("idempotent-replayed")
        );
        assert_eq!(response.headers().get_all("vary").iter().count(), 1);
    }
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn the_marker_may_have_another_name() {
    let shop = Shop::default();
    let marker = HeaderName::from_static("idempotency-replayed");
    let server = Server::start(routes(&shop, layer(|builder| builder.marker(marker)))).await;
    let request = || server.post("/orders").header("idempotency-key", "a");
    request().send().await.unwrap();
    assert_eq!(request().send().await.unwrap().headers()["idempotency-replayed"], "true");
}
