//! Stores, handlers and services that fail.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use axum::routing::post;
use idempotent_runtime::http::{IdempotencyLayer, Principal};
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{self, ListQuery, Settled, Stored};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{Codec, Idempotency, OnCrash};
use tower::{Layer, Service, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;

use crate::support::{Server, Shop, idempotency, layer, order, problem, routes, seen};

async fn panics(State(shop): State<Shop>) -> String {
    assert_ne!(shop.handle(), 1, "the handler is broken the first time");
    "fine".to_owned()
}

fn panicking(shop: &Shop, layer: IdempotencyLayer) -> Router {
    let app = Router::new().route("/", post(panics)).layer(layer).layer(CatchPanicLayer::new());
    app.with_state(shop.clone())
}

#[tokio::test]
async fn after_a_panic_the_outcome_is_unknown() {
    let shop = Shop::default();
    let server = Server::start(panicking(&shop, layer(|builder| builder))).await;
    let request = || server.post("/").header("idempotency-key", "a");
    assert_eq!(seen(request()).await.0, 500);
    let refused = loop {
        let refused = request().send().await.unwrap();
        // The record is given up in the background.
        if !refused.headers().contains_key("retry-after") {
            break refused;
        }
    };
    assert_eq!(refused.status(), 409);
    assert!(refused.text().await.unwrap().contains("\"outcome-unknown\""));
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn after_a_panic_it_runs_again_where_that_is_safe() {
    let shop = Shop::default();
    let server = Server::start(panicking(&shop, layer(|builder| builder.on_crash(OnCrash::Retry)))).await;
    let request = || server.post("/").header("idempotency-key", "a");
    assert_eq!(seen(request()).await.0, 500);
    while seen(request()).await.0 != 200 {}
    assert!(seen(request()).await.1);
    assert_eq!(shop.handled(), 2);
}

/// A service of tower, no router, whose error is its own.
#[tokio::test]
async fn the_error_of_a_service_stays_its_own_and_leaves_the_outcome_unknown() {
    for (policy, runs_again) in [(OnCrash::Refuse, false), (OnCrash::Retry, true)] {
        let failing =
            tower::service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>("the backend is gone") });
        let mut service = layer(|builder| builder.on_crash(policy)).layer(failing);
        let request = || Request::post("/").header("idempotency-key", "a").body(Body::empty()).unwrap();
        assert_eq!(service.ready().await.unwrap().call(request()).await.unwrap_err(), "the backend is gone");
        let again = service.ready().await.unwrap().call(request()).await;
        match again {
            Err(error) => assert!(runs_again, "{error}"),
            Ok(response) => {
                assert_eq!(response.status(), 409);
                assert!(!runs_again);
            }
        }
    }
}

#[tokio::test]
async fn without_a_store_nothing_runs_unless_it_may() {
    let shop = Shop::default();
    let store = Faults::new(MemoryStore::new());
    let idempotency =
        Idempotency::builder().store(store.clone()).store_timeout(Duration::from_millis(50)).build().unwrap();
    let builder = || IdempotencyLayer::builder(&idempotency, Principal::single_tenant());
    let closed = Server::start(routes(&shop, builder().build().unwrap())).await;
    let open = Server::start(routes(&shop, builder().fail_open().build().unwrap())).await;
    store.plan_always(Operation::Reserve, Fault::LoseRequest);
    let refused = closed.post("/orders").header("idempotency-key", "a").send().await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    assert!(refused.text().await.unwrap().contains("\"store-unavailable\""));
    assert_eq!(shop.handled(), 0);

    for _ in 0..2 {
        let (status, replayed, _) = seen(open.post("/orders").header("idempotency-key", "a")).await;
        assert_eq!((status, replayed), (201, false));
    }
    assert_eq!(shop.handled(), 2);
}

#[tokio::test]
async fn a_store_that_hangs_is_a_503_in_time() {
    let shop = Shop::default();
    let store = Faults::new(MemoryStore::new());
    let idempotency =
        Idempotency::builder().store(store.clone()).store_timeout(Duration::from_millis(50)).build().unwrap();
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let server = Server::start(routes(&shop, layer)).await;
    store.plan_always(Operation::Reserve, Fault::DelayRequest(Duration::from_secs(3600)));
    assert_eq!(
        problem(server.post("/orders").header("idempotency-key", "a")).await,
        (503, "store-unavailable".to_owned())
    );
    assert_eq!(shop.handled(), 0);
}

#[tokio::test]
async fn the_client_gets_the_response_that_could_not_be_stored() {
    let shop = Shop::default();
    let store = Faults::new(MemoryStore::new());
    let idempotency =
        Idempotency::builder().store(store.clone()).store_timeout(Duration::from_millis(50)).build().unwrap();
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let server = Server::start(routes(&shop, layer.clone())).await;
    store.plan_always(Operation::Complete, Fault::LoseRequest);
    let request = || server.post("/orders").header("idempotency-key", "a");
    assert_eq!(seen(request()).await, (201, false, "{\"id\":1}".to_owned()));
    assert_eq!(problem(request()).await.1, "in-progress");
    // It is written as soon as the store takes it.
    store.heal();
    layer.shutdown().await;
    assert_eq!(seen(request()).await, (201, true, "{\"id\":1}".to_owned()));
    assert_eq!(shop.handled(), 1);
}

/// Gives back what nobody has stored.
#[derive(Debug)]
struct Garbling;

impl Codec for Garbling {
    fn encode(
        &self,
        _: &RecordKey,
        plain: Vec<u8>,
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(plain)
    }
    fn decode(
        &self,
        _: &RecordKey,
        stored: &[u8],
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(stored[..stored.len() / 2].to_vec())
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_an_error_and_runs_nothing() {
    let shop = Shop::default();
    let idempotency = Idempotency::builder().store(MemoryStore::new()).codec(Garbling).build().unwrap();
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let server = Server::start(routes(&shop, layer)).await;
    let request = || server.post("/orders").header("idempotency-key", "a");
    assert_eq!(seen(request()).await.0, 201);
    assert_eq!(problem(request()).await, (503, "store-unavailable".to_owned()));
    assert_eq!(shop.handled(), 1);
}

/// The layer by mistake twice: the inner one does nothing more.
#[tokio::test]
async fn the_same_layer_twice_is_one_layer() {
    let shop = Shop::default();
    let layer = layer(|builder| builder);
    let app = Router::new().route("/orders", post(order)).layer(layer.clone()).layer(layer);
    let server = Server::start(app.with_state(shop.clone())).await;
    let request = || server.post("/orders").header("idempotency-key", "a");
    assert_eq!(seen(request()).await, (201, false, "{\"id\":1}".to_owned()));
    assert_eq!(seen(request()).await, (201, true, "{\"id\":1}".to_owned()));
}

/// What is asked whether it is ready is what is called.
#[tokio::test]
async fn the_service_that_was_ready_is_the_one_that_is_called() {
    #[derive(Default)]
    struct Fussy {
        ready: bool,
    }
    impl Clone for Fussy {
        fn clone(&self) -> Self {
            Self::default()
        }
    }
    impl Service<Request<Body>> for Fussy {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Body>, Infallible>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
            self.ready = true;
            std::task::Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Request<Body>) -> Self::Future {
            assert!(std::mem::take(&mut self.ready), "called without having been asked");
            std::future::ready(Ok(Response::new(Body::empty())))
        }
    }
    let mut service = layer(|builder| builder).layer(Fussy::default());
    for key in ["a", "a", "b"] {
        let request = Request::post("/").header("idempotency-key", key).body(Body::empty()).unwrap();
        assert_eq!(service.ready().await.unwrap().call(request).await.unwrap().status(), 200);
    }
    let request = Request::post("/").body(Body::empty()).unwrap();
    assert_eq!(service.ready().await.unwrap().call(request).await.unwrap().status(), 200);
}

#[tokio::test]
async fn nothing_secret_is_stored_or_told() {
    let idempotency = idempotency();
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let app =
        Router::new().route("/", post(|| async { ([("set-cookie", "session=geheim")], "ok") })).layer(layer);
    let server = Server::start(app).await;
    seen(server.post("/").header("idempotency-key", "a").bearer_auth("geheim").body("geheim")).await;
    let records = idempotency.list(&ListQuery::default()).await.unwrap().records;
    let store::State::Settled(Settled::Completed(Stored { bytes, .. })) = &records[0].state else {
        panic!("{records:?}")
    };
    assert_eq!(records.len(), 1);
    assert!(bytes.windows(2).any(|two| two == b"ok"));
    assert!(!bytes.windows(6).any(|six| six == b"geheim"));
    assert!(!format!("{records:?}").contains("geheim"));
}
