//! What a handler gets from the layer.

use axum::Router;
use axum::extract::{Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
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

/// An error type of the application's own, which becomes a response by its own means.
enum OwnError {
    Idempotency(Error),
}

impl From<Error> for OwnError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl IntoResponse for OwnError {
    fn into_response(self) -> Response {
        let Self::Idempotency(error) = self;
        (StatusCode::CONFLICT, error.code()).into_response()
    }
}

/// Calls a function whose key is `x-inner`, and waits in it.
async fn inner<E: From<Error>>(app: App, headers: HeaderMap) -> Result<String, E> {
    let key = headers["x-inner"].to_str().unwrap();
    let call = app.idempotency.operation("inner").key(key).run(|_| async {
        let number = app.shop.handle();
        app.shop.begun.notify_one();
        app.shop.finish.notified().await;
        Ok::<_, Error>(number)
    });
    Ok(format!("inner {}", call.await?))
}

async fn plain(State(app): State<App>, headers: HeaderMap) -> Result<String, Error> {
    inner(app, headers).await
}

async fn own(State(app): State<App>, headers: HeaderMap) -> Result<String, OwnError> {
    inner(app, headers).await
}

/// What is made of an error of this crate says nothing about the handler's work, and is never the stored response.
#[tokio::test]
async fn an_error_of_a_function_below_is_not_what_a_retry_gets() {
    for path in ["/plain", "/own"] {
        let (app, router) = app();
        let layer = IdempotencyLayer::builder(&app.idempotency, Principal::single_tenant()).build().unwrap();
        let below = Router::new().route("/plain", post(plain)).route("/own", post(own)).layer(layer);
        let server = Server::start(router.merge(below.with_state(app.clone()))).await;
        let request = |key: &str| server.post(path).header("idempotency-key", key).header("x-inner", "one");
        let first = tokio::spawn(seen(request("a")));
        app.shop.begun.notified().await;
        // Another request meets the function at work: in progress.
        let (status, replayed, content) = seen(request("b")).await;
        assert_eq!((status, replayed), (409, false), "{path}");
        assert!(content.contains("in-progress"), "{content}");
        app.shop.finish.notify_one();
        assert_eq!(first.await.unwrap().2, "inner 1");
        // Sent again under its key, it gets what the function gave meanwhile.
        assert_eq!(seen(request("b")).await, (200, false, "inner 1".to_owned()), "{path}");
        assert_eq!(seen(request("b")).await, (200, true, "inner 1".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_function_that_is_put_right_is_reached_by_the_same_key() {
    for own_error in [false, true] {
        let (app, _) = app();
        let layer = IdempotencyLayer::builder(&app.idempotency, Principal::single_tenant()).build().unwrap();
        // Without a handle at first: not configured.
        let configured = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flag = configured.clone();
        let handle = app.idempotency.clone();
        let handler = move || {
            let (flag, handle) = (flag.clone(), handle.clone());
            async move {
                #[idempotent(name = "later", key = "id")]
                async fn later(id: u32) -> Result<u32, Error> {
                    Ok(id)
                }
                let done = if flag.load(std::sync::atomic::Ordering::SeqCst) {
                    handle.within(later(7)).await
                } else {
                    later(7).await
                };
                match done {
                    Ok(done) => done.to_string().into_response(),
                    Err(error) if own_error => OwnError::from(error).into_response(),
                    Err(error) => error.into_response(),
                }
            }
        };
        let server = Server::start(Router::new().route("/", post(handler)).layer(layer)).await;
        let request = || server.post("/").header("idempotency-key", "a");
        assert!(matches!(seen(request()).await, (409 | 500, false, _)));
        configured.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(seen(request()).await, (200, false, "7".to_owned()));
    }
}

#[tokio::test]
async fn the_key_of_a_request_that_is_let_through_is_there_all_the_same() {
    let principal = Principal::of(|_| None).or_bypass();
    let disabled =
        IdempotencyLayer::builder(&Idempotency::disabled(), Principal::single_tenant()).build().unwrap();
    let bypassing = IdempotencyLayer::builder(&app().0.idempotency, principal).build().unwrap();
    for layer in [disabled, bypassing] {
        let server = Server::start(Router::new().route("/about", post(about)).layer(layer)).await;
        let request = server.post("/about").header("idempotency-key", "a");
        assert!(seen(request).await.2.starts_with("a 1 false"));
    }
}
