//! What happens when the service, or the network before it, does not do what it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use idempotent_runtime::store::{
    OwnerToken, PutStep, Release, Reserve, Reserved, Resolution, Step, StepState, Store, StoreErrorKind,
    Write,
};
use idempotent_runtime::stores::DynamoDbStore;
use idempotent_runtime::testing::{Fault, Faults};
use idempotent_runtime::{Error, Idempotency};
use tests::Runs;
use tests::servers::dynamodb::{client, config};

use crate::fakes::{Proxy, error, service};
use crate::support::*;

/// A store whose service answers everything with this error.
async fn failing(status: u16, code: &'static str) -> DynamoDbStore {
    let endpoint = service(move |_| (status, error(code, "as planned"))).await;
    DynamoDbStore::builder(client(&endpoint)).create_table(false).open().await.unwrap()
}

#[tokio::test]
async fn errors_are_of_the_kind_that_says_what_to_do() {
    use StoreErrorKind::{Full, Refused, Unavailable};
    let cases = [
        (400, "ProvisionedThroughputExceededException", Unavailable),
        (400, "ThrottlingException", Unavailable),
        (400, "RequestLimitExceeded", Unavailable),
        (400, "TransactionConflictException", Unavailable),
        (400, "TransactionInProgressException", Unavailable),
        (400, "ReplicatedWriteConflictException", Unavailable),
        (400, "ExpiredTokenException", Unavailable),
        (500, "InternalServerError", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (502, "NobodyKnowsException", Unavailable),
        (400, "ItemCollectionSizeLimitExceededException", Full),
        (400, "ResourceNotFoundException", Refused),
        (400, "AccessDeniedException", Refused),
        (400, "ValidationException", Refused),
        (400, "UnrecognizedClientException", Refused),
    ];
    for (status, code, kind) in cases {
        let store = failing(status, code).await;
        let (k, owner) = (key("1"), OwnerToken::random());
        let step = Step { name: "one".into(), state: StepState::Begun };
        let resolution = Resolution::NotDone;
        let errors = [
            store.reserve(request(&k, owner)).await.unwrap_err(),
            store.renew(&k, owner, LEASE).await.unwrap_err(),
            store.begin_effects(&k, owner, LEASE).await.unwrap_err(),
            store.complete(&k, owner, &completed("secret"), KEEP).await.unwrap_err(),
            store.release(&k, owner, Release::Forget).await.unwrap_err(),
            store.release(&k, owner, Release::Abandon).await.unwrap_err(),
            store.put_step(&k, owner, &step, LEASE).await.unwrap_err(),
            store.load(&k).await.unwrap_err(),
            store.resolve(&k, owner, OwnerToken::random(), &resolution).await.unwrap_err(),
            store.forget(&k, owner).await.unwrap_err(),
            store.purge(1).await.unwrap_err(),
            store.list(&idempotent_runtime::store::ListQuery::default()).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), kind, "{code}: {}", words(&error));
            assert!(words(&error).contains(code), "{}", words(&error));
            assert!(!format!("{error:?} {}", words(&error)).contains("secret"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_table_is_named_with_what_to_do() {
    let store = DynamoDbStore::builder(direct()).table("nowhere").create_table(false).open().await.unwrap();
    let error = store.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(
        words(&error).contains("`nowhere`") && words(&error).contains("create_table"),
        "{}",
        words(&error)
    );
}

#[tokio::test]
async fn nobody_at_the_other_end_is_unavailable() {
    let endpoint = tests::servers::dynamodb::endpoint(tests::servers::free_port());
    let builder = DynamoDbStore::builder(client(&endpoint));
    let error = builder.clone().open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let store = builder.create_table(false).open().await.unwrap();
    let error = store.load(&key("1")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
}

#[tokio::test]
async fn a_server_that_does_not_say_what_is_there_is_refused() {
    // As some emulators do: the condition fails, and the item is not shown.
    let store = failing(400, "ConditionalCheckFailedException").await;
    let error = store.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("ReturnValuesOnConditionCheckFailure"), "{}", words(&error));
}

/// A store behind a network that loses every other answer, with the SDK's own retries.
async fn through_a_bad_network() -> (DynamoDbStore, Proxy) {
    let proxy = Proxy::before(server().port()).await;
    let retries = RetryConfig::standard().with_max_attempts(6).with_initial_backoff(Duration::from_millis(2));
    let client = Client::from_conf(config(&proxy.endpoint()).retry_config(retries).build());
    let store = DynamoDbStore::builder(client).table(table()).open().await.unwrap();
    proxy.lose_one_of(2);
    (store, proxy)
}

#[tokio::test]
async fn the_sdks_own_repetitions_are_recognised() {
    let (store, proxy) = through_a_bad_network().await;
    // Not more: the SDK repeats less and less of what keeps failing.
    for n in 0..2 {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        assert_eq!(grant(&store, &k, owner).await.attempt, 1);
        assert_eq!(store.begin_effects(&k, owner, LEASE).await.unwrap(), Write::Applied);
        let step = Step { name: "one".into(), state: StepState::Done(b"1".as_slice().into()) };
        let put = store.put_step(&k, owner, &step, LEASE).await.unwrap();
        assert!(put == PutStep::Stored || put == PutStep::Exists(b"1".as_slice().into()), "{put:?}");
        assert_eq!(store.release(&k, owner, Release::Forget).await.unwrap(), Write::Applied);
        let second = OwnerToken::random();
        let granted = grant(&store, &k, second).await;
        assert_eq!((granted.attempt, granted.steps.len()), (2, 1));
        let last = Reserve { max_attempts: 2, ..request(&k, OwnerToken::random()) };
        assert_eq!(store.release(&k, second, Release::Abandon).await.unwrap(), Write::Applied);
        let Reserved::Held(unknown) = store.reserve(last).await.unwrap() else {
            panic!("a third attempt of two")
        };
        assert_eq!(unknown.owner, OwnerToken::NOBODY);
        let operator = OwnerToken::random();
        let resolution = Resolution::Done { settled: completed("found"), keep: KEEP };
        let resolved = store.resolve(&k, unknown.owner, operator, &resolution).await.unwrap();
        assert_eq!(resolved, idempotent_runtime::store::Compared::Changed);

        let (k, owner) = (key(&format!("{n}, deleted")), OwnerToken::random());
        grant(&store, &k, owner).await;
        assert_eq!(store.release(&k, owner, Release::Forget).await.unwrap(), Write::Applied);
        let (k, owner) = (key(&format!("{n}, completed")), OwnerToken::random());
        grant(&store, &k, owner).await;
        assert_eq!(store.complete(&k, owner, &completed("x"), KEEP).await.unwrap(), Write::Applied);
    }
    assert!(proxy.lost() >= 10, "{}", proxy.lost());
}

/// Sends each of 50 keys four times through `idempotency`, and sees that no body ran twice.
async fn each_body_once(idempotency: Idempotency) {
    let runs: Arc<Vec<Runs>> = Arc::new((0..50).map(|_| Runs::default()).collect());
    let answered = Arc::new(AtomicU32::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for n in (0..50).cycle().take(200) {
        let (idempotency, runs, answered) = (idempotency.clone(), Arc::clone(&runs), Arc::clone(&answered));
        calls.spawn(async move {
            let call = idempotency.operation("charge").wait(Duration::from_secs(60)).key(&n).fingerprint(&n);
            let result = call.run(|_| async { Ok::<_, Error>(runs[n].count()) }).await;
            if let Ok(value) = result {
                assert_eq!(value, 1);
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    assert!(runs.iter().all(|runs| runs.total() <= 1), "a body ran twice");
    assert_eq!(answered.load(Ordering::SeqCst), 200, "every call has its answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_that_a_cut_connection_loses_are_asked_for_again() {
    let proxy = Proxy::before(server().port()).await;
    let store = DynamoDbStore::builder(client(&proxy.endpoint())).table(table()).open().await.unwrap();
    proxy.lose_one_of(5);
    let builder = Idempotency::builder().store(store).store_timeout(Duration::from_secs(60));
    each_body_once(builder.build().unwrap()).await;
    assert!(proxy.lost() >= 20, "{}", proxy.lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_requests_and_answers_run_no_body_twice() {
    let store = builder().open().await.unwrap();
    let store = Faults::new(store).one_of(6, 1, Fault::LoseReply).one_of(9, 2, Fault::LoseRequest);
    let builder = Idempotency::builder().store(store).store_timeout(Duration::from_secs(60));
    each_body_once(builder.build().unwrap()).await;
}
