//! A shop behind the layer, on a real socket, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use idempotent_runtime::Idempotency;
use idempotent_runtime::http::{IdempotencyLayer, IdempotencyLayerBuilder, Principal};
use idempotent_runtime::stores::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the handlers of a shop share with their test.
#[derive(Clone, Default)]
pub(crate) struct Shop(Arc<Inside>);

#[derive(Default)]
pub(crate) struct Inside {
    handled: AtomicUsize,
    pub(crate) begun: Notify,
    pub(crate) finish: Notify,
}

impl Shop {
    /// How often a handler has begun.
    pub(crate) fn handled(&self) -> usize {
        self.0.handled.load(Ordering::SeqCst)
    }

    pub(crate) fn handle(&self) -> usize {
        self.0.handled.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl std::ops::Deref for Shop {
    type Target = Inside;
    fn deref(&self) -> &Inside {
        &self.0
    }
}

/// The usual handler: an order with a number of its own.
pub(crate) async fn order(State(shop): State<Shop>) -> Response {
    let number = shop.handle();
    let headers = [(header::LOCATION, format!("/orders/{number}")), (header::ETAG, format!("\"{number}\""))];
    (StatusCode::CREATED, headers, format!("{{\"id\":{number}}}")).into_response()
}

/// One that says when it has begun, and waits until it may finish.
pub(crate) async fn slow(State(shop): State<Shop>) -> String {
    let number = shop.handle();
    shop.begun.notify_one();
    shop.finish.notified().await;
    format!("slow {number}")
}

/// Answers with the status in the path's place: the header `x-status`.
pub(crate) async fn status(State(shop): State<Shop>, headers: HeaderMap) -> Response {
    shop.handle();
    let status: u16 = headers["x-status"].to_str().unwrap().parse().unwrap();
    StatusCode::from_u16(status).unwrap().into_response()
}

pub(crate) fn idempotency() -> Idempotency {
    Idempotency::new(MemoryStore::new())
}

/// The layer with the settings of `set`, on memory, for one client.
pub(crate) fn layer(
    set: impl FnOnce(IdempotencyLayerBuilder) -> IdempotencyLayerBuilder,
) -> IdempotencyLayer {
    set(IdempotencyLayer::builder(&idempotency(), Principal::single_tenant())).build().unwrap()
}

/// The usual routes below `layer`.
pub(crate) fn routes(shop: &Shop, layer: IdempotencyLayer) -> Router {
    Router::new()
        .route("/orders", post(order).patch(order).put(order).get(order))
        .route("/tickets/{id}", post(order))
        .route("/slow", post(slow))
        .route("/status", post(status))
        .layer(layer)
        .with_state(shop.clone())
}

/// A server that ends with its test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, task }
    }

    /// The shop with the layer's default settings.
    pub(crate) async fn shop(shop: &Shop) -> Self {
        Self::start(routes(shop, layer(|builder| builder))).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn post(&self, path: &str) -> reqwest::RequestBuilder {
        client().post(self.url(path))
    }

    /// Sends these bytes, and gives all that comes back until the server closes the connection.
    pub(crate) async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A POST of `{}` with these lines of header, byte for byte.
    pub(crate) async fn raw_post(&self, path: &str, lines: &[u8]) -> RawAnswer {
        let mut request = format!("POST {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n").into_bytes();
        request.extend(lines);
        request.extend(b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}");
        let text = self.raw(&request).await;
        let status = text.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default();
        RawAnswer { status, text }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().no_gzip().pool_max_idle_per_host(0).build().unwrap()
}

/// Status, whether it is marked as a replay, and the content.
pub(crate) async fn seen(request: reqwest::RequestBuilder) -> (u16, bool, String) {
    let response = request.send().await.unwrap();
    let replayed = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
    (response.status().as_u16(), replayed, response.text().await.unwrap())
}

/// The code of a problem document, after looking at what all of them have.
pub(crate) async fn problem(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(!response.headers().contains_key("idempotent-replayed"));
    let document: serde_json::Value = response.json().await.unwrap();
    assert_eq!(document["status"], status);
    assert!(document["type"].as_str().unwrap().starts_with("https://"));
    (status, document["code"].as_str().unwrap().to_owned())
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
