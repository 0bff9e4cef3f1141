//! The `Idempotency-Key` header in front of an HTTP service.
//!
//! [`IdempotencyLayer`] runs the handler of the first request with a key, stores its response, and gives that to every
//! retry. It is the same protocol, on the same stores, as an annotated function. It follows the Internet-Draft
//! [draft-ietf-httpapi-idempotency-key-header-07](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/),
//! which has expired without becoming an RFC; what it leaves open is decided in the
//! [guide](https://github.com/idempotent-rs/idempotent/blob/main/docs/http.md).
//!
//! Where it belongs, from the outside in: tracing, CORS, compression of responses, authentication, limits of rate,
//! decompression of requests, **this layer**, the handler. What is outside sees a replay as it sees a fresh response, and what it
//! refuses never touches a key.
//!
//! * The handler runs on a task of its own: a client that goes away does not interrupt it, and its response is stored.
//! * A handler that panics, or a process that dies, leaves the key used: a retry gets `outcome-unknown` (409), unless
//!   [`on_crash`](IdempotencyLayerBuilder::on_crash) says that running again is safe.
//! * A store that cannot be reached means that nothing runs: 503.
//!
//! A test of a handler needs no server:
//!
//! ```
//! # #[cfg(feature = "axum")]
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use axum::{Router, body::Body, http::Request, routing::post};
//! use idempotent_runtime::{Idempotency, stores::MemoryStore};
//! use idempotent_runtime::http::{IdempotencyLayer, Principal};
//! use tower_service::Service;
//!
//! let idempotency = Idempotency::new(MemoryStore::new());
//! let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
//! let mut app = Router::new().route("/payments", post(|| async { "charged" })).layer(layer);
//!
//! let payment = || Request::post("/payments").header("idempotency-key", "order-1").body(Body::empty()).unwrap();
//! let first = app.call(payment()).await.unwrap();
//! assert!(!first.headers().contains_key("idempotent-replayed"));
//! let retry = app.call(payment()).await.unwrap();
//! assert_eq!(retry.headers()["idempotent-replayed"], "true");
//! # });
//! ```

mod config;
mod content;
mod exchange;
#[cfg(feature = "axum")]
mod extract;
mod headers;
mod key;
mod layer;
mod principal;
mod problem;
mod published;
mod request;
mod responses;
mod service;
mod stored;

pub use config::{IdempotencyLayerBuilder, KeyScope, LayerError, Omitted};
#[cfg(feature = "axum")]
pub use extract::Rejection;
pub use key::{IdempotencyKey, Syntax};
pub use layer::IdempotencyLayer;
pub use principal::Principal;
pub use published::{PublishedPolicy, PublishedProblem};
pub use request::Compared;
pub use responses::{Keep, Responses, Verdict};
pub use service::{Content, IdempotencyService, ResponseFuture};
