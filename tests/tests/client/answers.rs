//! What an answer means.

use idempotent_runtime::client::{ClientError, Exchange};
use reqwest::Method;

use crate::script::{Act, OK, PROBLEM, Server, client};

const IN_PROGRESS: Act = Act::Answer(
    409,
    "content-type: application/problem+json\r\nretry-after: 0\r\n",
    "{\"code\":\"in-progress\"}",
);

/// How often it is sent when the first answer is this one.
async fn tries(method: Method, first: Act) -> usize {
    let server = Server::doing([first, OK]).await;
    let _ = client().request(method, server.url()).send().await;
    server.seen().len()
}

#[tokio::test]
async fn what_may_change_is_asked_again() {
    for status in [408, 425, 429, 500, 502, 503, 504] {
        assert_eq!(tries(Method::POST, Act::Answer(status, "", "")).await, 2, "{status}");
    }
    for act in [Act::Reset, Act::Half] {
        assert_eq!(tries(Method::POST, act.clone()).await, 2, "{act:?}");
    }
}

#[tokio::test]
async fn what_will_not_change_is_the_answer() {
    for status in [200, 204, 304, 400, 401, 402, 403, 404, 405, 409, 410, 413, 415, 422, 501, 505] {
        assert_eq!(tries(Method::POST, Act::Answer(status, "", "")).await, 1, "{status}");
    }
}

#[tokio::test]
async fn without_a_key_only_what_never_arrived_is_sent_again() {
    for act in [Act::Reset, Act::Half, Act::Answer(503, "", ""), Act::Answer(500, "", "")] {
        assert_eq!(tries(Method::PUT, act.clone()).await, 1, "{act:?}");
        assert_eq!(tries(Method::GET, act.clone()).await, 2, "safe: {act:?}");
    }
}

#[tokio::test]
async fn a_request_in_progress_is_asked_for_again_until_there_is_an_answer() {
    let server = Server::doing([
        Act::Reset,
        IN_PROGRESS,
        IN_PROGRESS,
        IN_PROGRESS,
        IN_PROGRESS,
        IN_PROGRESS,
        IN_PROGRESS,
        OK,
    ])
    .await;
    // More often than failures are asked again.
    let response = client().post(server.url()).send().await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(server.seen().len(), 8);
    assert_eq!(server.keys().len(), 1);
}

#[tokio::test]
async fn a_conflict_without_a_code_is_in_progress_only_if_it_says_when_to_come_again() {
    assert_eq!(tries(Method::POST, Act::Answer(409, "retry-after: 0\r\n", "")).await, 2);
    assert_eq!(tries(Method::POST, Act::Answer(409, "", "locked")).await, 1);
}

#[tokio::test]
async fn a_reused_key_is_an_error_and_never_replaced() {
    let server = Server::doing([Act::Answer(422, PROBLEM, "{\"code\":\"key-reused\"}"), OK]).await;
    let error = client().post(server.url()).send().await.unwrap_err();
    let Some(ClientError::KeyReused { key, .. }) = ClientError::of(&error) else { panic!("{error}") };
    assert_eq!(server.keys(), [key.as_str()]);
    // Another 422 is the application's own.
    let server = Server::doing([Act::Answer(422, PROBLEM, "{\"code\":\"amount-too-small\"}")]).await;
    let response = client().post(server.url()).send().await.unwrap();
    assert_eq!(response.status(), 422);
    assert_eq!(
        response.text().await.unwrap(),
        "{\"code\":\"amount-too-small\"}",
        "what was looked at is still there"
    );
}

#[tokio::test]
async fn an_outcome_that_the_server_does_not_know_is_not_asked_for_again() {
    let server = Server::doing([Act::Answer(409, PROBLEM, "{\"code\":\"outcome-unknown\"}"), OK]).await;
    let error = client().post(server.url()).send().await.unwrap_err();
    assert!(matches!(ClientError::of(&error), Some(ClientError::OutcomeUnknown { tries: 1, .. })), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn giving_up_after_doubt_gives_the_key() {
    for act in [Act::Reset, Act::Answer(500, "", "")] {
        let server = Server::doing([act]).await;
        let error = client().post(server.url()).send().await.unwrap_err();
        let Some(ClientError::OutcomeUnknown { key, tries, .. }) = ClientError::of(&error) else {
            panic!("{error}")
        };
        assert_eq!((*tries, server.seen().len()), (5, 5));
        assert_eq!(server.keys(), [key.as_str()]);
        assert!(!format!("{error:?} {error}").contains(key.as_str()));
    }
    // One doubt among refusals is doubt enough.
    let server = Server::doing([Act::Reset, Act::Answer(503, "", "")]).await;
    assert!(client().post(server.url()).send().await.is_err());
}

#[tokio::test]
async fn giving_up_without_doubt_gives_the_answer() {
    let server = Server::doing([Act::Answer(503, "", "busy")]).await;
    let response = client().post(server.url()).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.extensions().get::<Exchange>().unwrap().tries),
        (503, 5)
    );

    // Nobody listens there any more.
    let address = Server::doing([OK]).await.address;
    tokio::task::yield_now().await;
    let error = loop {
        match client().post(format!("http://{address}/")).send().await {
            Err(error) => break error,
            Ok(_) => tokio::task::yield_now().await,
        }
    };
    assert!(ClientError::of(&error).is_none(), "{error}");
}

#[tokio::test]
async fn a_replayed_error_does_not_change() {
    let server = Server::doing([Act::Answer(500, "idempotent-replayed: true\r\n", ""), OK]).await;
    let response = client().post(server.url()).send().await.unwrap();
    assert_eq!(response.status(), 500);
    assert!(response.extensions().get::<Exchange>().unwrap().replayed);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn odd_documents_are_no_trouble() {
    for document in ["", "{", "[]", "null", "{\"code\":7}", "{\"error\":\"no\"}"] {
        let server = Server::doing([Act::Answer(409, PROBLEM, document)]).await;
        assert_eq!(client().post(server.url()).send().await.unwrap().text().await.unwrap(), document);
    }
}
