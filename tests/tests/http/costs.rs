//! What a request without a key costs: nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};

use axum::body::Body;
use axum::http::{Request, Response};
use idempotent_runtime::http::{IdempotencyLayer, Principal};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Faults, Operation};
use idempotent_runtime::{Idempotency, http::IdempotencyService};
use tower::{Layer, Service};

#[derive(Clone)]
struct Bare;

impl Service<Request<Body>> for Bare {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;
    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }
    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Body::empty())))
    }
}

#[test]
fn a_request_without_a_key_allocates_nothing_and_asks_no_store() {
    let store = Faults::new(MemoryStore::new());
    let idempotency = Idempotency::new(store.clone());
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let mut service: IdempotencyService<Bare> = layer.layer(Bare);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for request in [Request::post("/"), Request::get("/").header("idempotency-key", "a")] {
            let request = request.body(Body::empty()).unwrap();
            let mut response = None;
            let mut bare = None;
            let guarded = allocation_counter::measure(|| response = Some(service.call(request)));
            let alone = allocation_counter::measure(|| bare = Some(Bare.call(Request::new(Body::empty()))));
            response.unwrap().await.unwrap();
            bare.unwrap().await.unwrap();
            assert!(
                guarded.count_total <= alone.count_total,
                "{} over {}",
                guarded.count_total,
                alone.count_total
            );
        }
    });
    assert_eq!(store.count(Operation::Reserve) + store.count(Operation::Load), 0);
}
