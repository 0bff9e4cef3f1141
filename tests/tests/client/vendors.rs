//! The rules of some servers.

use idempotent_runtime::client::{ClientError, IdempotencyMiddleware, RequestKey, Vendor};
use reqwest_middleware::ClientWithMiddleware;

use crate::script::{Act, OK, Server, fast, with};

const JSON: &str = "content-type: application/json\r\n";

fn client(vendor: Vendor) -> ClientWithMiddleware {
    with(IdempotencyMiddleware::with(vendor, fast()).unwrap())
}

#[tokio::test]
async fn stripe_says_itself_whether_to_try_again() {
    for (first, tries) in [
        (Act::Answer(400, "stripe-should-retry: true\r\n", ""), 2),
        (Act::Answer(500, "stripe-should-retry: false\r\n", ""), 1),
        (
            Act::Answer(
                409,
                "content-type: application/json\r\n",
                "{\"error\":{\"code\":\"idempotency_key_in_use\"}}",
            ),
            2,
        ),
        (Act::Answer(503, "", ""), 2),
    ] {
        let server = Server::doing([first.clone(), OK]).await;
        let _ = client(Vendor::stripe()).post(server.url()).send().await;
        assert_eq!(server.seen().len(), tries, "{first:?}");
    }
    let reused = Act::Answer(400, JSON, "{\"error\":{\"type\":\"idempotency_error\"}}");
    let server = Server::doing([reused]).await;
    let error = client(Vendor::stripe()).post(server.url()).send().await.unwrap_err();
    assert!(matches!(ClientError::of(&error), Some(ClientError::KeyReused { .. })), "{error}");
}

#[tokio::test]
async fn another_server_has_no_say_by_the_header_of_stripe() {
    let server = Server::doing([Act::Answer(400, "stripe-should-retry: true\r\n", ""), OK]).await;
    assert_eq!(client(Vendor::draft()).post(server.url()).send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn adyen_marks_what_is_transient() {
    let busy = "content-type: application/json\r\ntransient-error: true\r\n";
    for (lines, tries) in [(busy, 2), (JSON, 1)] {
        let server = Server::doing([Act::Answer(422, lines, "{\"errorCode\":\"704\"}"), OK]).await;
        let _ = client(Vendor::adyen()).post(server.url()).send().await;
        assert_eq!(server.seen().len(), tries, "{lines}");
    }
    let long = RequestKey::new("a".repeat(65)).unwrap();
    let server = Server::doing([OK]).await;
    assert!(client(Vendor::adyen()).post(server.url()).with_extension(long).send().await.is_err());
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn paypal_has_a_header_of_its_own() {
    let server = Server::doing([Act::Reset, OK]).await;
    client(Vendor::paypal()).post(server.url()).send().await.unwrap();
    let keys: Vec<_> = server.seen().iter().map(|request| request.all("paypal-request-id")).collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0][0].len(), 36);
    assert!(server.seen()[0].all("idempotency-key").is_empty());
}

#[tokio::test]
async fn square_has_its_key_in_the_content() {
    let server = Server::doing([Act::Reset, OK]).await;
    let key = RequestKey::new("order-1").unwrap();
    let request = client(Vendor::square()).post(server.url()).body("{\"amount\":250}").with_extension(key);
    request.send().await.unwrap();
    for request in server.seen() {
        let content: serde_json::Value = serde_json::from_slice(&request.content).unwrap();
        assert_eq!(content, serde_json::json!({ "amount": 250, "idempotency_key": "order-1" }));
    }
    // One that is there stays.
    let server = Server::doing([OK]).await;
    client(Vendor::square()).post(server.url()).body("{\"idempotency_key\":\"mine\"}").send().await.unwrap();
    assert_eq!(server.seen()[0].content, b"{\"idempotency_key\":\"mine\"}");
    // A content that has no place for one is sent without, and so only once.
    let server = Server::doing([Act::Reset, OK]).await;
    assert!(client(Vendor::square()).post(server.url()).body("no json").send().await.is_err());
    assert_eq!(server.seen().len(), 1);
}
