//! Whose key it is.

use axum::Router;
use axum::http::request::Parts;
use axum::routing::post;
use idempotent_runtime::Idempotency;
use idempotent_runtime::http::{IdempotencyLayer, Principal};
use idempotent_runtime::stores::MemoryStore;

use crate::support::{Server, Shop, order, problem, seen};

fn account(request: &Parts) -> Option<String> {
    request.headers.get("x-account").map(|value| value.to_str().unwrap_or_default().to_owned())
}

async fn server(shop: &Shop, idempotency: &Idempotency, principal: Principal) -> Server {
    let layer = IdempotencyLayer::builder(idempotency, principal).build().unwrap();
    Server::start(Router::new().route("/orders", post(order)).layer(layer).with_state(shop.clone())).await
}

fn request(server: &Server, account: &'static str, key: &str) -> reqwest::RequestBuilder {
    server.post("/orders").header("idempotency-key", key).header("x-account", account)
}

#[tokio::test]
async fn two_principals_never_meet() {
    let shop = Shop::default();
    let server = server(&shop, &Idempotency::new(MemoryStore::new()), Principal::of(account)).await;
    assert_eq!(seen(request(&server, "anna", "a")).await.2, "{\"id\":1}");
    assert_eq!(seen(request(&server, "bert", "a")).await, (201, false, "{\"id\":2}".to_owned()));
    assert_eq!(
        seen(request(&server, "anna", "a").bearer_auth("refreshed")).await,
        (201, true, "{\"id\":1}".to_owned())
    );
}

/// Whoever guesses the keys of another learns nothing: every one of them is new.
#[tokio::test]
async fn keys_of_others_cannot_be_told_from_unused_ones() {
    let shop = Shop::default();
    let server = server(&shop, &Idempotency::new(MemoryStore::new()), Principal::of(account)).await;
    for key in 0..500 {
        seen(request(&server, "victim", &format!("order-{key}"))).await;
    }
    for key in 0..500 {
        let (status, replayed, _) =
            seen(request(&server, "attacker", &format!("order-{key}")).body("other")).await;
        assert_eq!((status, replayed), (201, false));
    }
}

/// Neither by what they are called, nor by what their keys are.
#[tokio::test]
async fn names_and_keys_do_not_run_into_each_other() {
    let shop = Shop::default();
    let server = server(&shop, &Idempotency::new(MemoryStore::new()), Principal::of(account)).await;
    let pairs = [
        ("a", "b/c"),
        ("a/b", "c"),
        ("a%2Fb", "c"),
        ("*", "%"),
        ("a:b", "'; drop table"),
        ("a", "b:c"),
        ("shared", "x"),
    ];
    for (number, (account, key)) in pairs.into_iter().enumerate() {
        let key = format!("\"{key}\"");
        assert_eq!(seen(request(&server, account, &key)).await.2, format!("{{\"id\":{}}}", number + 1));
    }
}

#[tokio::test]
async fn without_a_principal_a_request_is_refused_unless_said_otherwise() {
    let shop = Shop::default();
    let idempotency = Idempotency::new(MemoryStore::new());
    let nobody = |server: &Server| server.post("/orders").header("idempotency-key", "a");
    let refusing = server(&shop, &idempotency, Principal::of(account)).await;
    assert_eq!(problem(nobody(&refusing)).await, (401, "principal-missing".to_owned()));
    assert_eq!(problem(request(&refusing, " ", "a")).await.0, 401);
    assert_eq!(shop.handled(), 0);

    let bypassing = server(&shop, &idempotency, Principal::of(account).or_bypass()).await;
    for _ in 0..2 {
        assert!(!seen(nobody(&bypassing)).await.1);
    }
    let sharing = server(&shop, &idempotency, Principal::of(account).or_shared("guests")).await;
    assert!(!seen(nobody(&sharing)).await.1);
    assert!(seen(nobody(&sharing)).await.1);
    assert!(!seen(request(&sharing, "guests", "a")).await.1, "an account of that name is another one");
}

#[tokio::test]
async fn two_services_on_one_store_are_kept_apart_by_their_namespaces() {
    let shop = Shop::default();
    let store = MemoryStore::new();
    let of =
        |namespace: &str| Idempotency::builder().store(store.clone()).namespace(namespace).build().unwrap();
    for service in ["shop", "bank"] {
        let server = server(&shop, &of(service), Principal::single_tenant()).await;
        assert!(!seen(request(&server, "anna", "a")).await.1, "{service}");
        assert!(seen(request(&server, "anna", "a")).await.1, "{service}");
    }
}

/// What an outer layer refuses, such as a login, never touches a key.
#[tokio::test]
async fn what_is_refused_outside_touches_no_key() {
    use axum::extract::Request;
    use axum::http::StatusCode;
    use axum::middleware::{Next, from_fn};
    use axum::response::Response;
    async fn login(request: Request, next: Next) -> Result<Response, StatusCode> {
        if request.headers().contains_key("authorization") {
            Ok(next.run(request).await)
        } else {
            Err(StatusCode::UNAUTHORIZED)
        }
    }
    let shop = Shop::default();
    let idempotency = Idempotency::new(MemoryStore::new());
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let app = Router::new()
        .route("/orders", post(order))
        .layer(layer)
        .layer(from_fn(login))
        .with_state(shop.clone());
    let server = Server::start(app).await;
    let request = || server.post("/orders").header("idempotency-key", "a");
    assert_eq!(seen(request()).await.0, 401);
    assert_eq!(seen(request().bearer_auth("t")).await.0, 201);
    // And who has lost the right to ask is not shown the response.
    assert_eq!(seen(request()).await.0, 401);
    assert!(seen(request().bearer_auth("t")).await.1);
}
