//! One key for each request.

use idempotent_runtime::client::{ClientError, Exchange, IdempotencyMiddleware, KeyForm, RequestKey, Vendor};
use reqwest::Method;

use crate::script::{Act, OK, Server, client, fast, with};

#[tokio::test]
async fn every_try_has_the_same_key_and_the_same_bytes() {
    let server = Server::doing([Act::Reset, Act::Answer(503, "", ""), Act::Half, OK]).await;
    let request =
        client().post(server.url()).header("content-type", "application/json").body("{\"amount\":250}");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 201);
    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|request| request == &seen[0]), "{seen:?}");
    assert_eq!(server.keys().len(), 1);
    let key = &server.keys()[0];
    assert_eq!((key.len(), &key[14..15]), (36, "4"), "a UUID of version 4");
    let exchange = response.extensions().get::<Exchange>().unwrap();
    assert_eq!(
        (exchange.tries, exchange.replayed, exchange.key.as_ref().unwrap().as_str()),
        (4, false, key.as_str())
    );
}

#[tokio::test]
async fn two_requests_have_two_keys() {
    let server = Server::doing([OK]).await;
    for _ in 0..2 {
        client().post(server.url()).send().await.unwrap();
    }
    assert_eq!(server.keys().len(), 2);
}

#[tokio::test]
async fn a_key_of_the_callers_own_is_used_and_never_overwritten() {
    let server = Server::doing([Act::Reset, OK]).await;
    let key = RequestKey::new("order-1").unwrap();
    client().post(server.url()).with_extension(key.clone()).send().await.unwrap();
    assert_eq!(server.keys(), ["order-1"]);

    let server = Server::doing([Act::Reset, OK]).await;
    let request = client().post(server.url()).header("idempotency-key", "\"theirs\"").with_extension(key);
    let response = request.send().await.unwrap();
    assert_eq!(server.keys(), ["\"theirs\""]);
    assert_eq!(response.extensions().get::<Exchange>().unwrap().key.as_ref().unwrap().as_str(), "theirs");
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_an_error_before_anything_is() {
    let server = Server::doing([OK]).await;
    for key in ["", "a b", "a,b", &"a".repeat(256)] {
        let error = client().post(server.url()).header("idempotency-key", key).send().await.unwrap_err();
        assert!(matches!(ClientError::of(&error), Some(ClientError::InvalidKey)), "{error}");
        assert!(matches!(RequestKey::new(key), Err(ClientError::InvalidKey)));
    }
    let twice = client().post(server.url()).header("idempotency-key", "a").header("idempotency-key", "a");
    assert!(twice.send().await.is_err());
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn only_the_methods_that_need_one_get_a_key() {
    let server = Server::doing([OK]).await;
    for (method, expected) in [
        (Method::POST, true),
        (Method::PATCH, true),
        (Method::PUT, false),
        (Method::DELETE, false),
        (Method::GET, false),
        (Method::HEAD, false),
        (Method::OPTIONS, false),
    ] {
        client().request(method.clone(), server.url()).send().await.unwrap();
        assert_eq!(!server.seen().last().unwrap().key().is_empty(), expected, "{method}");
    }
    // And whichever is given one.
    client().delete(server.url()).with_extension(RequestKey::random()).send().await.unwrap();
    assert!(!server.seen().last().unwrap().key().is_empty());
}

#[tokio::test]
async fn the_draft_has_its_key_in_quotes() {
    let server = Server::doing([OK]).await;
    let mut vendor = Vendor::draft();
    vendor.form = KeyForm::Quoted;
    let client = with(IdempotencyMiddleware::with(vendor, fast()).unwrap());
    client.post(server.url()).with_extension(RequestKey::new("k").unwrap()).send().await.unwrap();
    assert_eq!(server.keys(), ["\"k\""]);
}

#[test]
fn a_derived_key_follows_from_its_parts_alone() {
    let derived = RequestKey::derived(["order-1", "charge"]);
    assert_eq!(derived, RequestKey::derived(["order-1", "charge"]));
    assert_ne!(derived, RequestKey::derived(["order-1c", "harge"]));
    assert_eq!(RequestKey::random_short().as_str().len(), 32);
    assert_ne!(RequestKey::random(), RequestKey::random());
    assert_eq!(format!("{derived:?}"), "RequestKey(..)");
}

#[tokio::test]
async fn a_redirect_keeps_key_and_content_with_its_origin_and_nowhere_else() {
    let server = Server::doing([Act::Answer(307, "location: /again\r\n", ""), OK]).await;
    client().post(server.url()).body("content").send().await.unwrap();
    let seen = server.seen();
    assert!(seen[1].head.starts_with("POST /again"));
    assert_eq!((seen[0].key(), &seen[0].content), (seen[1].key(), &seen[1].content));

    let other = Server::doing([OK]).await;
    let lines: &'static str = Box::leak(format!("location: http://{}/\r\n", other.address).into_boxed_str());
    let elsewhere = Server::doing([Act::Answer(307, lines, "")]).await;
    assert_eq!(client().post(elsewhere.url()).send().await.unwrap().status(), 307);
    let as_get = Server::doing([Act::Answer(303, "location: /again\r\n", ""), OK]).await;
    assert_eq!(client().post(as_get.url()).send().await.unwrap().status(), 303);
    assert!(other.seen().is_empty());
}

/// The guide names a test for each line.
#[test]
fn the_tests_that_the_guide_names_are_there() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let guide = std::fs::read_to_string(format!("{root}/docs/client.md")).unwrap();
    let mut named = 0;
    for quoted in guide.split('`').skip(1).step_by(2) {
        let Some((module @ ("keys" | "answers" | "contents" | "limits" | "vendors"), test)) =
            quoted.split_once("::")
        else {
            continue;
        };
        let source = std::fs::read_to_string(format!("{root}/tests/tests/client/{module}.rs")).unwrap();
        assert!(source.contains(&format!("fn {test}()")), "{quoted}");
        named += 1;
    }
    assert!(named > 10, "{named}");
}
