//! How many requests an operation takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use idempotent_runtime::Idempotency;
use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::store::{
    Lease, OwnerToken, Release, Reserve, Reserved, Resolution, Step, StepState, Store, TakeOver,
};
use idempotent_runtime::stores::DynamoDbStore;
use tests::servers::dynamodb::config;

use crate::support::*;

/// Counts what is sent.
#[derive(Clone, Debug, Default)]
struct Requests(Arc<AtomicUsize>);

impl Intercept for Requests {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl Requests {
    /// How many there were since the last look.
    fn taken(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

async fn counted() -> (DynamoDbStore, Requests) {
    let requests = Requests::default();
    let client = Client::from_conf(config(&server().endpoint()).interceptor(requests.clone()).build());
    let store =
        DynamoDbStore::builder(client).table(table()).clock_skew(Duration::ZERO).open().await.unwrap();
    requests.taken();
    (store, requests)
}

fn done(name: &str) -> Step {
    Step { name: name.into(), state: StepState::Done(b"1".as_slice().into()) }
}

#[tokio::test]
async fn a_first_call_takes_two_and_everything_after_it_one() {
    let (store, requests) = counted().await;
    let idempotency = Idempotency::builder().store(store.clone()).build().unwrap();
    let call = |amount: u32| {
        let operation = idempotency.operation("charge").key("order-1").fingerprint(&amount);
        operation.run(move |_| async move { Ok::<_, idempotent_runtime::Error>(amount) })
    };
    assert_eq!(call(1).await.unwrap(), 1);
    assert_eq!(requests.taken(), 2, "first call");
    assert_eq!(call(1).await.unwrap(), 1);
    assert_eq!(requests.taken(), 1, "replay");
    assert_eq!(call(2).await.unwrap_err().code(), "key-reused");
    assert_eq!(requests.taken(), 1, "mismatch");

    let k = key("busy");
    grant(&store, &k, OwnerToken::random()).await;
    requests.taken();
    held(&store, &k).await;
    assert_eq!(requests.taken(), 1, "busy");
}

#[tokio::test]
async fn every_operation_takes_one_and_a_take_over_two() {
    let (store, requests) = counted().await;
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    assert_eq!(requests.taken(), 1, "reserve");
    store.renew(&k, owner, LEASE).await.unwrap();
    assert_eq!(requests.taken(), 1, "renew");
    store.begin_effects(&k, owner, LEASE).await.unwrap();
    assert_eq!(requests.taken(), 1, "begin_effects");
    store.put_step(&k, owner, &done("one"), LEASE).await.unwrap();
    assert_eq!(requests.taken(), 1, "put_step");
    store.load(&k).await.unwrap();
    assert_eq!(requests.taken(), 1, "load");
    store.release(&k, owner, Release::Abandon).await.unwrap();
    assert_eq!(requests.taken(), 1, "abandon");
    let second = OwnerToken::random();
    assert_eq!(grant(&store, &k, second).await.attempt, 2);
    assert_eq!(requests.taken(), 2, "take-over");
    store.complete(&k, second, &idempotent_runtime::store::Settled::Unknown, KEEP).await.unwrap();
    assert_eq!(requests.taken(), 1, "complete");
    let resolution = Resolution::Done { settled: completed("x"), keep: KEEP };
    let operator = OwnerToken::random();
    store.resolve(&k, second, operator, &resolution).await.unwrap();
    assert_eq!(requests.taken(), 1, "resolve");
    store.forget(&k, operator).await.unwrap();
    assert_eq!(requests.taken(), 1, "forget");
    grant(&store, &k, owner).await;
    requests.taken();
    store.release(&k, owner, Release::Forget).await.unwrap();
    assert_eq!(requests.taken(), 1, "release");
    grant(&store, &k, owner).await;
    requests.taken();
    store.release(&k, owner, Release::Unused).await.unwrap();
    assert_eq!(requests.taken(), 1, "release of an unused attempt");
}

#[tokio::test]
async fn a_policy_that_forbids_is_asked_in_the_one_request() {
    let (store, requests) = counted().await;
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    store.begin_effects(&k, owner, LEASE).await.unwrap();
    store.release(&k, owner, Release::Abandon).await.unwrap();
    requests.taken();
    for take_over in [TakeOver::BeforeEffects, TakeOver::BetweenSteps] {
        let reserve = Reserve { take_over, ..request(&k, OwnerToken::random()) };
        assert!(matches!(store.reserve(reserve).await.unwrap(), Reserved::Held(_)));
        assert_eq!(requests.taken(), 1);
    }
    let other = Reserve { fingerprint: Fingerprint::from_parts(1, [8; 32]), ..request(&k, owner) };
    assert!(matches!(
        store.reserve(Reserve { owner: OwnerToken::random(), ..other }).await.unwrap(),
        Reserved::Held(_)
    ));
    assert_eq!(requests.taken(), 1);
}

#[tokio::test]
async fn the_rare_cases_take_two() {
    let (store, requests) = counted().await;
    let (k, owner) = (key("1"), OwnerToken::random());
    let first = grant(&store, &k, owner).await;
    requests.taken();
    assert_eq!(grant(&store, &k, owner).await, first);
    assert_eq!(requests.taken(), 2, "the same token again");
    store.put_step(&k, owner, &done("one"), LEASE).await.unwrap();
    requests.taken();
    store.release(&k, owner, Release::Forget).await.unwrap();
    assert_eq!(requests.taken(), 2, "release with finished steps");
    let last = Reserve { max_attempts: 1, ..request(&k, OwnerToken::random()) };
    assert!(matches!(store.reserve(last).await.unwrap(), Reserved::Held(_)));
    assert_eq!(requests.taken(), 2, "exhausted");

    let (k, over) = (key("2"), Lease { duration: Duration::ZERO, unknown_ttl: Duration::ZERO });
    store.reserve(Reserve { lease: over, ..request(&k, owner) }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    requests.taken();
    assert_eq!(grant(&store, &k, OwnerToken::random()).await.attempt, 1);
    assert_eq!(requests.taken(), 2, "expired, and still there");
}

/// Keeps what is sent: the action, and the body.
#[derive(Clone, Debug, Default)]
struct Sent(Arc<Mutex<Vec<(String, String)>>>);

impl Intercept for Sent {
    fn name(&self) -> &'static str {
        "sent"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let action = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        self.0.lock().unwrap().push((action, body));
        Ok(())
    }
}

#[tokio::test]
async fn every_look_at_a_record_is_at_its_newest_state() {
    let sent = Sent::default();
    let client = Client::from_conf(config(&server().endpoint()).interceptor(sent.clone()).build());
    let store = DynamoDbStore::builder(client).table(table()).open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    store.load(&k).await.unwrap().unwrap();
    held(&store, &k).await;
    store.complete(&k, owner, &completed("1"), KEEP).await.unwrap();
    held(&store, &k).await;
    store.complete(&k, owner, &completed("1"), KEEP).await.unwrap();
    store.forget(&k, OwnerToken::random()).await.unwrap();
    let sent = sent.0.lock().unwrap().clone();
    let looks: Vec<_> = sent.iter().filter(|(action, _)| action.ends_with("GetItem")).collect();
    assert!(!looks.is_empty(), "{sent:?}");
    assert!(looks.iter().all(|(_, body)| body.contains(r#""ConsistentRead":true"#)), "{looks:?}");
}
