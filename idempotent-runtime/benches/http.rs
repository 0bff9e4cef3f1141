//! What the layer costs a request, beside the same service without it.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use idempotent_runtime::Idempotency;
use idempotent_runtime::http::{IdempotencyLayer, IdempotencyService, Principal};
use idempotent_runtime::stores::MemoryStore;
use tokio::runtime::Runtime;
use tower_layer::Layer;
use tower_service::Service;

use support::{Ratio, compare};

#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod support;

/// Answers with as many bytes as it was sent, at once.
#[derive(Clone)]
struct Bare;

impl Service<Request<Full<Bytes>>> for Bare {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(request.into_body())))
    }
}

fn layered() -> IdempotencyService<Bare> {
    let idempotency = Idempotency::new(MemoryStore::new());
    IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap().layer(Bare)
}

fn request(key: Option<u64>) -> Request<Full<Bytes>> {
    static CONTENT: [u8; 1024] = [b'a'; 1024];
    let mut request = Request::post("/payments").header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("idempotency-key", format!("018f3c5e-7b1a-7c3d-9e42-{key:012x}"));
    }
    request.body(Full::new(Bytes::from_static(&CONTENT))).unwrap()
}

/// So many requests, each of them made before the clock runs; what comes back is read.
fn timed<S>(runtime: &Runtime, service: &mut S, keys: impl Iterator<Item = Option<u64>>) -> Duration
where
    S: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible>,
{
    let requests: Vec<_> = keys.map(request).collect();
    runtime.block_on(async {
        let started = Instant::now();
        for request in requests {
            let response = service.call(request).await.unwrap();
            std::hint::black_box(response.into_body().collect().await.unwrap());
        }
        started.elapsed()
    })
}

fn requests(c: &mut Criterion<Ratio>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let without = |operations| std::iter::repeat_n(None, usize::try_from(operations).unwrap());
    compare(
        c,
        "a request without a key over the bare service",
        ("with the layer", &mut |operations| timed(&runtime, &mut layered(), without(operations))),
        &mut [("bare", &mut |operations| timed(&runtime, &mut Bare, without(operations)))],
    );
    compare(
        c,
        "a first request of 1 KiB over the bare service",
        ("first request", &mut |operations| timed(&runtime, &mut layered(), (0..operations).map(Some))),
        &mut [("bare", &mut |operations| timed(&runtime, &mut Bare, (0..operations).map(Some)))],
    );
    compare(
        c,
        "a replay of 1 KiB over the bare service",
        ("replay", &mut |operations| {
            let mut service = layered();
            timed(&runtime, &mut service, (0..operations).map(Some));
            timed(&runtime, &mut service, (0..operations).map(Some))
        }),
        &mut [("bare", &mut |operations| timed(&runtime, &mut Bare, (0..operations).map(Some)))],
    );
}

criterion_group! {
    name = benches;
    config = support::criterion(20, Duration::from_secs(3));
    targets = requests
}
criterion_main!(benches);
