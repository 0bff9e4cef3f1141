//! The service that the layer makes: what needs no protection goes straight through.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::config::Config;
use super::exchange::exchange;
use super::layer::Admission;

/// What can be the content of a request or a response: read once, and made again from what was read.
pub trait Content:
    Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + From<Bytes> + Send + 'static
{
}

impl<B> Content for B where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + From<Bytes> + Send + 'static
{
}

/// The service of an [`IdempotencyLayer`](super::IdempotencyLayer).
#[derive(Clone)]
pub struct IdempotencyService<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> IdempotencyService<S> {
    pub(super) fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }
}

impl<S, Q, A> Service<Request<Q>> for IdempotencyService<S>
where
    S: Service<Request<Q>, Response = Response<A>, Future: Send, Error: Send> + Clone + Send + 'static,
    S::Error: 'static,
    Q: Content,
    A: Content,
{
    type Response = Response<A>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, A, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        match self.config.admit(&request) {
            Admission::Unprotected => {
                ResponseFuture::Inner { inner: self.inner.call(request), ignored: false }
            }
            Admission::Ignored => ResponseFuture::Inner { inner: self.inner.call(request), ignored: true },
            Admission::Refused(problem) => {
                let response = self.config.problem(problem);
                ResponseFuture::Protected { exchange: Box::pin(std::future::ready(Ok(response))) }
            }
            Admission::Protected(key) => {
                // The clone has not been asked whether it is ready, so it stays, and the one that was goes along.
                let clone = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, clone);
                let exchange = exchange(Arc::clone(&self.config), inner, request, key);
                ResponseFuture::Protected { exchange: Box::pin(exchange) }
            }
        }
    }
}

type Exchange<A, E> = Pin<Box<dyn Future<Output = Result<Response<A>, E>> + Send>>;

pin_project! {
    /// The response of an [`IdempotencyService`].
    #[project = Projected]
    pub enum ResponseFuture<F, A, E> {
        #[doc(hidden)]
        Inner { #[pin] inner: F, ignored: bool },
        #[doc(hidden)]
        Protected { exchange: Exchange<A, E> },
    }
}

impl<F, A, E> Future for ResponseFuture<F, A, E>
where
    F: Future<Output = Result<Response<A>, E>>,
{
    type Output = Result<Response<A>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Inner { inner, ignored } => {
                let mut response = ready!(inner.poll(cx))?;
                if *ignored {
                    let name = HeaderName::from_static("idempotency-status");
                    response.headers_mut().insert(name, HeaderValue::from_static("ignored"));
                }
                Poll::Ready(Ok(response))
            }
            Projected::Protected { exchange } => exchange.as_mut().poll(cx),
        }
    }
}

impl<S> fmt::Debug for IdempotencyService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdempotencyService").field(&self.config).finish()
    }
}

impl<F, A, E> fmt::Debug for ResponseFuture<F, A, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
