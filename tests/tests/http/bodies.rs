//! Contents: their size, and whether they come whole.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Response, StatusCode};
use axum::routing::post;
use futures_util::StreamExt;
use http_body::{Frame, SizeHint};
use idempotent_runtime::http::Omitted;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{SECOND, Server, Shop, layer, order, problem, routes, seen};

#[tokio::test]
async fn a_content_that_is_announced_too_large_is_refused_unread() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let head = "POST /orders HTTP/1.1\r\nhost: shop\r\nconnection: close\r\nidempotency-key: a\r\n";
    let answer = server.raw(format!("{head}content-length: 1048577\r\n\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("\"payload-too-large\""), "{answer}");
    // And one that asks first is told before it sends anything.
    let asking = format!("{head}content-length: 1048577\r\nexpect: 100-continue\r\n\r\n");
    let answer = server.raw(asking.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(shop.handled(), 0);
}

#[tokio::test]
async fn a_content_that_turns_out_too_large_is_refused_and_leaves_no_claim() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.max_request_bytes(1000)))).await;
    let request = |bytes: usize| {
        let chunks = (0..bytes.div_ceil(100)).map(|_| Ok::<_, Infallible>(Bytes::from_static(&[b'a'; 100])));
        let content = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
        server.post("/orders").header("idempotency-key", "a").body(content)
    };
    assert_eq!(problem(request(1100)).await, (413, "payload-too-large".to_owned()));
    assert_eq!(seen(request(1000)).await.0, 201);
    assert!(seen(request(1000)).await.1);
}

#[tokio::test]
async fn the_limit_of_axum_still_holds() {
    async fn take(State(shop): State<Shop>, content: Bytes) -> String {
        shop.handle();
        content.len().to_string()
    }
    let shop = Shop::default();
    let app =
        Router::new().route("/", post(take)).layer(layer(|builder| builder)).layer(DefaultBodyLimit::max(10));
    let server = Server::start(app.with_state(shop.clone())).await;
    let request = || server.post("/").header("idempotency-key", "a").body("12345678901");
    assert_eq!(seen(request()).await.0, 413);
    assert_eq!(shop.handled(), 0);
}

#[tokio::test]
async fn an_outer_limit_is_told_as_what_it_is() {
    let shop = Shop::default();
    let app =
        routes(&shop, layer(|builder| builder)).layer(tower_http::limit::RequestBodyLimitLayer::new(10));
    let server = Server::start(app).await;
    let chunks = [Ok::<_, Infallible>(Bytes::from_static(b"12345678")), Ok(Bytes::from_static(b"12345678"))];
    let content = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let request = server.post("/orders").header("idempotency-key", "a").body(content);
    assert_eq!(problem(request).await, (413, "payload-too-large".to_owned()));
}

#[tokio::test]
async fn a_client_that_breaks_off_leaves_no_claim() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /orders HTTP/1.1\r\nhost: shop\r\nidempotency-key: a\r\ncontent-length: 10\r\n\r\n12345";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.is_empty() || answer.contains("incomplete-request"), "{answer}");
    assert_eq!(seen(server.post("/orders").header("idempotency-key", "a").body("1234567890")).await.0, 201);
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn a_client_that_sends_too_slowly_is_told_and_never_holds_a_claim() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.read_timeout(SECOND / 20)))).await;
    let head = "POST /orders HTTP/1.1\r\nhost: shop\r\nconnection: close\r\nidempotency-key: a\r\ncontent-length: 10\r\n\r\n12345";
    let answer = server.raw(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("incomplete-request"), "{answer}");
    assert_eq!(seen(server.post("/orders").header("idempotency-key", "a").body("1234567890")).await.0, 201);
}

/// As many bytes as the client asks for in `x-bytes`.
async fn sized(State(shop): State<Shop>, headers: axum::http::HeaderMap) -> Response<Body> {
    shop.handle();
    let bytes: usize = headers["x-bytes"].to_str().unwrap().parse().unwrap();
    let mut response = Response::new(Body::from(vec![b'a'; bytes]));
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert("location", "/orders/1".parse().unwrap());
    response
}

async fn streamed(State(shop): State<Shop>) -> Body {
    let number = shop.handle();
    let first = futures_util::stream::once(async move { Ok::<_, Infallible>(format!("event {number}\n")) });
    // The rest comes when the test lets it.
    let rest = futures_util::stream::once(async move {
        shop.finish.notified().await;
        Ok("end\n".to_owned())
    });
    Body::from_stream(first.chain(rest))
}

/// Says that it has ten bytes, gives five, and breaks.
struct Broken(usize);

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0 += 1;
        Poll::Ready(Some(match self.0 {
            1 => Ok(Frame::data(Bytes::from_static(b"12345"))),
            _ => Err(std::io::Error::other("the disk is gone")),
        }))
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(10)
    }
}

async fn broken(State(shop): State<Shop>) -> Body {
    shop.handle();
    Body::new(Broken(0))
}

async fn large(shop: &Shop, omitted: Omitted) -> Server {
    let layer = layer(|builder| builder.max_response_bytes(1000).omitted(omitted));
    let app = Router::new()
        .route("/sized", post(sized))
        .route("/streamed", post(streamed))
        .route("/broken", post(broken))
        .route("/orders", post(order))
        .layer(layer);
    Server::start(app.with_state(shop.clone())).await
}

#[tokio::test]
async fn a_response_of_the_largest_size_is_stored_and_a_larger_one_is_delivered_once() {
    let shop = Shop::default();
    let server = large(&shop, Omitted::Head).await;
    let request = |bytes: usize| {
        server
            .post("/sized")
            .header("idempotency-key", format!("k{bytes}"))
            .header("x-bytes", bytes.to_string())
    };
    assert_eq!(seen(request(1000)).await.2.len(), 1000);
    let (status, replayed, content) = seen(request(1000)).await;
    assert_eq!((status, replayed, content.len()), (201, true, 1000));

    assert_eq!(seen(request(1001)).await.2.len(), 1001);
    let retry = request(1001).send().await.unwrap();
    assert_eq!(retry.status(), 201);
    assert_eq!(retry.headers()["location"], "/orders/1");
    assert_eq!(retry.headers()["idempotent-replay"], "omitted");
    assert_eq!(retry.headers()["idempotent-replayed"], "true");
    assert!(retry.text().await.unwrap().is_empty());
    assert_eq!(shop.handled(), 2);
}

#[tokio::test]
async fn in_place_of_a_content_that_was_not_kept_there_may_be_a_problem() {
    let shop = Shop::default();
    let server = large(&shop, Omitted::Problem).await;
    let request = || server.post("/sized").header("idempotency-key", "a").header("x-bytes", "1001");
    seen(request()).await;
    let retry = request().send().await.unwrap();
    assert_eq!(retry.status(), 409);
    assert_eq!(retry.headers()["idempotent-replayed"], "true");
    assert!(retry.text().await.unwrap().contains("\"result-not-retained\""));
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn a_stream_reaches_the_client_as_it_comes_and_is_not_run_again() {
    let shop = Shop::default();
    let server = large(&shop, Omitted::Head).await;
    let request = || server.post("/streamed").header("idempotency-key", "a");
    let mut first = request().send().await.unwrap();
    // The rest of it has not been made yet.
    assert_eq!(first.chunk().await.unwrap().unwrap(), "event 1\n");
    let retry = request().send().await.unwrap();
    assert_eq!(
        (retry.status().as_u16(), retry.headers()["idempotent-replay"].to_str().unwrap()),
        (200, "omitted")
    );
    shop.finish.notify_one();
    assert_eq!(first.chunk().await.unwrap().unwrap(), "end\n");
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn a_response_that_breaks_half_way_is_no_success_and_is_not_run_again() {
    let shop = Shop::default();
    let server = large(&shop, Omitted::Head).await;
    let request = || server.post("/broken").header("idempotency-key", "a");
    for _ in 0..2 {
        assert_eq!(problem(request()).await, (409, "result-not-retained".to_owned()));
    }
    assert_eq!(shop.handled(), 1);
}

/// Nothing of a content is held twice: what the handler gets is what was read.
#[tokio::test]
async fn the_handler_gets_the_content_as_it_was_sent() {
    async fn echo(content: Bytes) -> Bytes {
        content
    }
    let app = Router::new().route("/", post(echo)).layer(layer(|builder| builder));
    let server = Server::start(app).await;
    let content: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let request = || server.post("/").header("idempotency-key", "a").body(content.clone());
    for _ in 0..2 {
        let echoed = request().send().await.unwrap().bytes().await.unwrap();
        assert!(echoed == content);
    }
}
