//! The layer, and which requests it protects.

use std::fmt;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, UPGRADE};
use http::{HeaderValue, Method, Request};
use tower_layer::Layer;

use super::config::{Config, IdempotencyLayerBuilder};
use super::key::IdempotencyKey;
use super::principal::Principal;
use super::problem::Problem;
use super::published::PublishedPolicy;
use super::service::IdempotencyService;
use crate::idempotency::Idempotency;

/// Protects the handlers below it by the `Idempotency-Key` header: the first request with a key runs, and every retry gets
/// its response.
///
/// It is a tower layer for services whose requests and responses have a content that can be made from
/// [`Bytes`](bytes::Bytes), as those of axum have. See the [module](super) for where it belongs among other layers.
///
/// ```
/// use idempotent_runtime::Idempotency;
/// use idempotent_runtime::http::{IdempotencyLayer, Principal};
/// use idempotent_runtime::stores::MemoryStore;
///
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).required().build()?;
/// # let _ = layer;
/// # Ok::<_, idempotent_runtime::http::LayerError>(())
/// ```
#[derive(Clone)]
pub struct IdempotencyLayer {
    config: Arc<Config>,
}

impl IdempotencyLayer {
    /// Sets a layer on this handle's store.
    pub fn builder(idempotency: &Idempotency, principal: Principal) -> IdempotencyLayerBuilder {
        IdempotencyLayerBuilder::new(idempotency, principal)
    }

    pub(super) fn of(config: Config) -> Self {
        Self { config: Arc::new(config) }
    }

    /// What clients have to know, for the API's documentation.
    pub fn policy(&self) -> PublishedPolicy {
        PublishedPolicy::of(&self.config)
    }

    /// How many protected requests are being answered: those whose handlers are at work, and duplicates that wait for one.
    pub fn in_flight(&self) -> usize {
        self.config.most_in_flight.saturating_sub(self.config.in_flight.available_permits())
    }

    /// Waits until every handler has come to its end and its response is stored: those whose clients have gone too. Call it
    /// after the server has stopped to accept requests, and before the runtime ends.
    pub async fn shutdown(&self) {
        self.config.idempotency.shutdown().await;
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = IdempotencyService<S>;

    fn layer(&self, inner: S) -> IdempotencyService<S> {
        IdempotencyService::new(inner, Arc::clone(&self.config))
    }
}

impl fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdempotencyLayer").field(&self.config).finish()
    }
}

/// What is done with a request before its content is looked at.
#[derive(Debug)]
pub(super) enum Admission {
    Unprotected,
    /// It has a key, which means nothing here.
    Ignored,
    Refused(Problem),
    Protected(IdempotencyKey),
}

/// In the extensions of a request that a layer has taken on, so that the same layer below does nothing more.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakenOn;

impl Config {
    /// Without a key this allocates nothing and asks no store.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Admission {
        // First what most requests are: without a key, where none is required.
        let has_key = self.field.is_in(request.headers());
        if (!has_key && !self.required) || request.extensions().get::<TakenOn>().is_some() {
            return Admission::Unprotected;
        }
        if !self.methods.contains(request.method()) || is_no_exchange(request) {
            return if has_key && self.signal_ignored { Admission::Ignored } else { Admission::Unprotected };
        }
        match self.field.key(request.headers()) {
            Ok(Some(key)) => Admission::Protected(key),
            Ok(None) if self.required => Admission::Refused(Problem::MISSING_KEY),
            Ok(None) => Admission::Unprotected,
            Err(_) => Admission::Refused(Problem::INVALID_KEY),
        }
    }
}

/// Whether it is the beginning of something other than one request and one response: another protocol, or gRPC, whose
/// outcome is in its trailers.
fn is_no_exchange<B>(request: &Request<B>) -> bool {
    request.method() == Method::CONNECT
        || request.headers().get_all(UPGRADE).iter().any(names_websocket)
        || request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Not every `Upgrade`: many clients offer `h2c` with all that they send, and are answered as if they had not.
fn names_websocket(protocols: &HeaderValue) -> bool {
    protocols
        .as_bytes()
        .split(|byte| *byte == b',')
        .any(|one| one.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}
