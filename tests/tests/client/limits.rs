//! How often and how long.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_runtime::client::{
    ClientError, Exchange, IdempotencyMiddleware, PolicyError, RequestKey, RetryPolicy, Vendor,
};

use crate::script::{Act, OK, Server, client, fast, with};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn a_policy_that_outlives_the_servers_memory_is_refused() {
    for deadline in [DAY, DAY - Duration::from_secs(30), Duration::MAX] {
        let policy = RetryPolicy::default().deadline(deadline);
        let refused = IdempotencyMiddleware::with(Vendor::draft(), policy);
        assert_eq!(refused.err(), Some(PolicyError::DeadlineBeyondTtl));
    }
    assert!(IdempotencyMiddleware::with(Vendor::adyen(), RetryPolicy::default().deadline(DAY)).is_ok());
    assert_eq!(RetryPolicy::default().tries(0).check(&Vendor::draft()), Err(PolicyError::NoTries));
}

#[tokio::test]
async fn the_server_is_not_asked_again_before_it_wants_to_be() {
    // Longer than the deadline: not at all.
    let server = Server::doing([Act::Answer(503, "retry-after: 600\r\n", ""), OK]).await;
    assert_eq!(client().post(server.url()).send().await.unwrap().status(), 503);
    assert_eq!(server.seen().len(), 1);
    // In the past, as a date: at once.
    let date = "retry-after: Tue, 01 Dec 2020 00:00:00 GMT\r\n";
    let server = Server::doing([Act::Answer(503, date, ""), OK]).await;
    assert_eq!(client().post(server.url()).send().await.unwrap().status(), 201);
    let started = tokio::time::Instant::now();
    let server = Server::doing([Act::Answer(503, "retry-after: 1\r\n", ""), OK]).await;
    assert_eq!(client().post(server.url()).send().await.unwrap().status(), 201);
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn as_many_tries_as_there_may_be() {
    for tries in 1..4 {
        let server = Server::doing([Act::Answer(503, "", "")]).await;
        let client = with(IdempotencyMiddleware::with(Vendor::draft(), fast().tries(tries)).unwrap());
        client.post(server.url()).send().await.unwrap();
        assert_eq!(server.seen().len(), usize::try_from(tries).unwrap());
    }
}

#[tokio::test]
async fn a_host_that_fails_is_spared() {
    let server = Server::doing([Act::Answer(503, "", "")]).await;
    let client = with(IdempotencyMiddleware::with(Vendor::draft(), fast().budget(0.2)).unwrap());
    for _ in 0..50 {
        client.post(server.url()).send().await.unwrap();
    }
    // Fifty requests, ten retries that are free, and one for each five requests.
    let sent = server.seen().len();
    assert!((60..=70).contains(&sent), "{sent}");
}

#[tokio::test]
async fn waiting_for_the_first_one_does_not_use_up_what_failures_have() {
    let busy = Act::Answer(409, "retry-after: 0\r\n", "");
    let script = std::iter::repeat_n(busy, 15).chain([Act::Reset, Act::Reset, Act::Reset, OK]);
    let server = Server::doing(script).await;
    assert_eq!(client().post(server.url()).send().await.unwrap().status(), 201);
    assert_eq!(server.seen().len(), 19);
}

#[tokio::test]
async fn a_request_that_is_given_up_tells_its_key() {
    let server = Server::doing([Act::Hang]).await;
    let abandoned = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&abandoned);
    let middleware =
        IdempotencyMiddleware::new().on_abandoned(move |key| told.lock().unwrap().push(key.clone()));
    let client = with(middleware);
    let key = RequestKey::new("order-1").unwrap();
    let request = tokio::spawn(client.post(server.url()).with_extension(key.clone()).send());
    while server.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(*abandoned.lock().unwrap(), [key]);
}

#[tokio::test]
async fn a_timeout_means_that_nobody_knows() {
    let server = Server::doing([Act::Hang]).await;
    let client = with(IdempotencyMiddleware::with(Vendor::draft(), fast().tries(2)).unwrap());
    let error = client.post(server.url()).timeout(Duration::from_millis(50)).send().await.unwrap_err();
    let Some(ClientError::OutcomeUnknown { tries, cause, .. }) = ClientError::of(&error) else {
        panic!("{error}")
    };
    assert_eq!((*tries, server.seen().len(), cause.is_some()), (2, 2, true));
    assert_eq!(server.keys().len(), 1);
}

/// Those who fail at the same moment do not come back at the same moment.
#[tokio::test]
async fn pauses_differ() {
    let policy = RetryPolicy::default().pauses(Duration::from_millis(20), Duration::from_millis(40)).tries(2);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let server = Server::doing([Act::Answer(503, "", ""), OK]).await;
        let client = with(IdempotencyMiddleware::with(Vendor::draft(), policy).unwrap());
        let started = std::time::Instant::now();
        let response = client.post(server.url()).send().await.unwrap();
        assert_eq!(response.extensions().get::<Exchange>().unwrap().tries, 2);
        pauses.push(started.elapsed().as_micros());
    }
    assert!(pauses.iter().all(|pause| *pause >= 20_000), "{pauses:?}");
    pauses.sort_unstable();
    pauses.dedup();
    assert!(pauses.len() > 4, "{pauses:?}");
}
