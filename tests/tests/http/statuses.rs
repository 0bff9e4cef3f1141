//! Which responses are stored.

use std::time::Duration;

use axum::Router;
use axum::extract::{Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use idempotent_runtime::Idempotency;
use idempotent_runtime::http::{IdempotencyLayer, Keep, Principal, Responses, Verdict};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;

use crate::support::{Server, Shop, layer, routes, seen};

/// Whether the second request with a key gets a replay of the first one's status.
async fn is_stored(server: &Server, status: u16) -> bool {
    let request = || {
        server
            .post("/status")
            .header("idempotency-key", format!("k{status}"))
            .header("x-status", status.to_string())
    };
    assert_eq!(seen(request()).await.0, status);
    let (again, replayed, _) = seen(request()).await;
    assert_eq!(again, status);
    replayed
}

async fn stored(responses: Responses) -> Vec<u16> {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.responses(responses)))).await;
    let mut stored = Vec::new();
    for status in 200..600 {
        if is_stored(&server, status).await {
            stored.push(status);
        }
    }
    stored
}

fn but(range: std::ops::Range<u16>, not: &[u16]) -> Vec<u16> {
    range.filter(|status| !not.contains(status)).collect()
}

#[tokio::test]
async fn by_default_answers_are_stored_and_refusals_release() {
    let mut expected = but(200..400, &[304]);
    expected.extend([402, 404, 409, 410]);
    expected.extend(but(500..600, &[503]));
    assert_eq!(stored(Responses::default()).await, expected);
}

#[tokio::test]
async fn outcomes_release_every_error_of_the_server() {
    let mut expected = but(200..400, &[304]);
    expected.extend([402, 404, 409, 410]);
    assert_eq!(stored(Responses::outcomes()).await, expected);
}

#[tokio::test]
async fn stripe_stores_whatever_a_handler_answers() {
    assert_eq!(stored(Responses::stripe()).await, but(200..600, &[]));
}

#[tokio::test]
async fn success_only_stores_success_only() {
    assert_eq!(stored(Responses::success_only()).await, but(200..300, &[]));
}

#[tokio::test]
async fn a_rule_decides_for_each_response() {
    let rule =
        Responses::by(
            |response| {
                if response.status == StatusCode::IM_A_TEAPOT { Keep::Store } else { Keep::Release }
            },
        );
    assert_eq!(stored(rule).await, [418]);
}

#[tokio::test]
async fn a_released_key_may_come_with_another_content() {
    async fn register(State(shop): State<Shop>, Json(amount): Json<u64>) -> String {
        format!("{} {amount}", shop.handle())
    }
    let shop = Shop::default();
    let app =
        Router::new().route("/", post(register)).layer(layer(|builder| builder)).with_state(shop.clone());
    let server = Server::start(app).await;
    let request = |kind: &str, content: &'static str| {
        server.post("/").header("idempotency-key", "a").header("content-type", kind.to_owned()).body(content)
    };
    // Refused by the extractor, each for another reason.
    assert_eq!(seen(request("text/plain", "1")).await.0, 415);
    assert_eq!(seen(request("application/json", "tru")).await.0, 400);
    assert_eq!(seen(request("application/json", "\"one\"")).await.0, 422);
    assert_eq!(seen(request("application/json", "1")).await, (200, false, "1 1".to_owned()));
    assert!(seen(request("application/json", "1")).await.1);
}

/// A handler that answers as the header says, with its own mind about it.
async fn decided(State(shop): State<Shop>, headers: HeaderMap) -> Response {
    let number = shop.handle();
    let verdict = match headers["x-verdict"].to_str().unwrap() {
        "store" => Verdict::store(),
        "release" => Verdict::release(),
        "hour" => Verdict::keep_for(Duration::from_secs(3600)),
        _ => Verdict::default(),
    };
    let status: u16 = headers["x-status"].to_str().unwrap().parse().unwrap();
    let mut response = (StatusCode::from_u16(status).unwrap(), number.to_string()).into_response();
    response.extensions_mut().insert(verdict);
    response
}

#[tokio::test]
async fn a_handler_decides_for_its_response() {
    let shop = Shop::default();
    let clock = ManualClock::default();
    let idempotency = Idempotency::new(MemoryStore::builder().clock(clock.clone()).build());
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
    let app = Router::new().route("/", post(decided)).layer(layer).with_state(shop.clone());
    let server = Server::start(app).await;
    let request = |verdict: &str, status: u16| {
        let request = server.post("/").header("idempotency-key", format!("{verdict}{status}"));
        request.header("x-verdict", verdict.to_owned()).header("x-status", status.to_string())
    };
    for (verdict, status, stored) in
        [("store", 429, true), ("release", 200, false), ("hour", 200, true), ("none", 429, false)]
    {
        seen(request(verdict, status)).await;
        assert_eq!(seen(request(verdict, status)).await.1, stored, "{verdict} {status}");
    }
    clock.advance(Duration::from_secs(3601));
    assert!(!seen(request("hour", 200)).await.1, "an hour is over");
    assert!(seen(request("store", 429)).await.1, "a day is not");
    clock.advance(Duration::from_secs(24 * 3600));
    assert!(!seen(request("store", 429)).await.1, "a day is over");
}
