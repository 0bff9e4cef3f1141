//! What a handler gets from the layer.

use axum::Router;
use axum::extract::{Json, State};
use axum::routing::post;
use idempotent_runtime::http::{IdempotencyKey, IdempotencyLayer, Principal};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::{Attempt, Error, Idempotency, attempt, idempotent, step};

use crate::support::{Server, Shop, client, problem, seen};

#[derive(Clone)]
struct App {
    idempotency: Idempotency,
    shop: Shop,
}

#[idempotent(name = "charge", key = "key", store = app.idempotency, skip(app))]
async fn charge(app: &App, key: IdempotencyKey, amount: u64) -> Result<u64, Error> {
    app.shop.handle();
    Ok(amount)
}

/// The key of the request is the key of the charge.
async fn pay(
    State(app): State<App>,
    key: IdempotencyKey,
    Json(amount): Json<u64>,
) -> Result<Json<u64>, Error> {
    charge(&app, key, amount).await.map(Json)
}

async fn about(key: Option<IdempotencyKey>, found: Attempt) -> String {
    let key = key.as_ref().map_or("none", IdempotencyKey::as_str);
    let inside = attempt().map(|attempt| attempt.downstream_key("gateway")).unwrap_or_default();
    let same = !inside.is_empty() && inside == found.downstream_key("gateway");
    format!("{key} {} {} {same}", found.number(), found.fencing_token() > 0)
}

async fn steps(State(app): State<App>) -> Result<String, Error> {
    let first = step("reserve", || async { Ok::<_, Error>(app.shop.handle()) }).await?;
    Ok(format!("step {first}"))
}

fn app() -> (App, Router) {
    let idempotency = Idempotency::new(MemoryStore::new());
    let app = App { idempotency: idempotency.clone(), shop: Shop::default() };
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let router = Router::new()
        .route("/payments", post(pay))
        .route("/about", post(about).get(about))
        .route("/steps", post(steps))
        .layer(layer)
        .with_state(app.clone());
    (app, router)
}

#[tokio::test]
async fn the_key_of_a_request_is_the_key_of_a_function_below() {
    let (app, router) = app();
    let server = Server::start(router).await;
    let request = |key: &str| server.post("/payments").header("idempotency-key", key).json(&250);
    assert_eq!(seen(request("a")).await, (200, false, "250".to_owned()));
    assert_eq!(seen(request("a")).await, (200, true, "250".to_owned()));
    assert_eq!(app.shop.handled(), 1);
    // By another way, the function knows its key again.
    let key = server.post("/about").header("idempotency-key", "b").send().await.unwrap();
    assert_eq!(key.status(), 200);
}

#[tokio::test]
async fn a_handler_that_needs_a_key_says_so() {
    let (_, router) = app();
    let server = Server::start(router).await;
    let response = server.post("/payments").json(&250).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(problem(server.post("/payments").json(&250)).await, (400, "missing-key".to_owned()));
}

#[tokio::test]
async fn a_handler_knows_its_attempt() {
    let (_, router) = app();
    let server = Server::start(router).await;
    let request = server.post("/about").header("idempotency-key", "\"a\"");
    assert_eq!(seen(request).await.2, "a 1 true true");
    assert_eq!(seen(client().get(server.url("/about"))).await.2, "none 1 false false");
}

#[tokio::test]
async fn a_handler_may_have_steps() {
    let (app, router) = app();
    let server = Server::start(router).await;
    for _ in 0..2 {
        assert_eq!(seen(server.post("/steps").header("idempotency-key", "a")).await.2, "step 1");
    }
    assert_eq!(app.shop.handled(), 1);
}

#[test]
fn a_key_is_not_shown_by_debug() {
    use axum::http::Request;
    use tower::{Layer, Service};
    let (_, _) = app();
    let idempotency = Idempotency::new(MemoryStore::new());
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let seen = tower::service_fn(|request: Request<axum::body::Body>| async move {
        let shown = format!("{:?}", request.extensions().get::<IdempotencyKey>().unwrap());
        Ok::<_, std::convert::Infallible>(axum::http::Response::new(axum::body::Body::from(shown)))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shown = runtime.block_on(async {
        let request =
            Request::post("/").header("idempotency-key", "geheim").body(axum::body::Body::empty()).unwrap();
        let response = layer.layer(seen).call(request).await.unwrap();
        axum::body::to_bytes(response.into_body(), 1000).await.unwrap()
    });
    assert_eq!(shown, "IdempotencyKey(..)");
}
