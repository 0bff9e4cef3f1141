//! The DynamoDB store against the bare requests that anybody would send, on the same client.
//!
//! `IDEMPOTENT_BENCH_DYNAMODB` names the endpoint, of an emulator or of a region. It makes two tables there, and leaves
//! them. Each round measures both sides, one right after the other, and the median of the rounds' ratios is shown.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark stops where something is wrong")]

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Lease, OwnerToken, Reserve, Reserved, Settled, Store, Stored, TakeOver, Write,
};
use idempotent_runtime::stores::DynamoDbStore;
use idempotent_runtime::{Error, Idempotency};
use tokio::task::JoinSet;

const ROUNDS: usize = 9;
const RESULT: [u8; 300] = [b'x'; 300];
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
const LEASE: Lease =
    Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(30 * 24 * 60 * 60) };

fn client(endpoint: &str) -> Client {
    let environment = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let (id, secret) =
        (environment("AWS_ACCESS_KEY_ID", "test"), environment("AWS_SECRET_ACCESS_KEY", "test"));
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(environment("AWS_REGION", "us-east-1")))
        .credentials_provider(Credentials::new(id, secret, None, None, "environment"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(endpoint);
    Client::from_conf(config.build())
}

/// Both sides of every comparison.
#[derive(Clone)]
struct Sides {
    client: Client,
    store: DynamoDbStore,
    idempotency: Idempotency,
    next: Arc<AtomicU64>,
}

impl Sides {
    async fn open(endpoint: &str) -> Self {
        let client = client(endpoint);
        let table = format!("bench-{}", std::process::id());
        let store = DynamoDbStore::builder(client.clone()).table(table).open().await.unwrap();
        let idempotency = Idempotency::builder().store(store.clone()).build().unwrap();
        Self { client, store, idempotency, next: Arc::default() }
    }

    fn key(&self) -> RecordKey {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        RecordKey::new("shop::charge", format!("bench/shop::charge/order-{number}"))
    }

    /// An update of one item on a condition, as anybody would write it by hand.
    async fn bare_write(
        &self,
        key: &RecordKey,
        condition: &str,
        update: &str,
        value: AttributeValue,
    ) -> bool {
        let sent = self
            .client
            .update_item()
            .table_name(self.store.table())
            .key("key", AttributeValue::S(format!("bare/{}", key.as_str())))
            .condition_expression(condition)
            .update_expression(update)
            .expression_attribute_values(":value", value)
            .return_values(ReturnValue::None)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match sent {
            Ok(_) => true,
            Err(SdkError::ServiceError(error)) if error.err().is_conditional_check_failed_exception() => {
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn bare_reserve(&self, key: &RecordKey) -> bool {
        let value = AttributeValue::B(Blob::new([7; 32]));
        self.bare_write(key, "attribute_not_exists(fp)", "SET fp = :value", value).await
    }

    async fn bare_complete(&self, key: &RecordKey) {
        let value = AttributeValue::B(Blob::new(RESULT));
        assert!(self.bare_write(key, "attribute_exists(fp)", "SET res = :value", value).await);
    }

    async fn reserve(&self, key: &RecordKey, owner: OwnerToken) -> Reserved {
        let request = Reserve {
            key,
            owner,
            fingerprint: Fingerprint::from_parts(1, [7; 32]),
            lease: LEASE,
            take_over: TakeOver::Always,
            max_attempts: 10,
        };
        self.store.reserve(request).await.unwrap()
    }

    async fn complete(&self, key: &RecordKey, owner: OwnerToken) {
        let settled = Settled::Completed(Stored { version: 1, bytes: RESULT.into() });
        assert_eq!(self.store.complete(key, owner, &settled, KEEP).await.unwrap(), Write::Applied);
    }

    /// The two writes of a call by hand, with all that a record has in it, on the least of conditions.
    async fn same_cycle(self, mut item: HashMap<String, AttributeValue>) {
        let key = AttributeValue::S(format!("same/{}", self.key().as_str()));
        item.insert("key".to_owned(), key.clone());
        let put = self.client.put_item().table_name(self.store.table()).set_item(Some(item));
        put.condition_expression("attribute_not_exists(#k)")
            .expression_attribute_names("#k", "key")
            .send()
            .await
            .unwrap();
        let update = self.client.update_item().table_name(self.store.table()).key("key", key);
        update
            .condition_expression("#s = :r")
            .update_expression("SET #s = :c, #t = :t, #e = :t, #f = :f, #v = :v REMOVE #l, #g, #x, #p, #q")
            .set_expression_attribute_names(Some(names()))
            .expression_attribute_values(":r", AttributeValue::S("running".into()))
            .expression_attribute_values(":c", AttributeValue::S("completed".into()))
            .expression_attribute_values(":t", AttributeValue::N("1796103161432935".into()))
            .expression_attribute_values(":f", AttributeValue::B(Blob::new(RESULT)))
            .expression_attribute_values(":v", AttributeValue::N("1".into()))
            .send()
            .await
            .unwrap();
    }

    async fn bare_cycle(self) {
        let key = self.key();
        assert!(self.bare_reserve(&key).await);
        self.bare_complete(&key).await;
    }

    async fn cycle(self) {
        let (key, owner) = (self.key(), OwnerToken::random());
        assert!(matches!(self.reserve(&key, owner).await, Reserved::Granted(_)));
        self.complete(&key, owner).await;
    }

    async fn call(self) {
        let key = self.key();
        self.called(key.as_str()).await;
    }

    async fn called(&self, key: &str) {
        let call = self.idempotency.operation("shop::charge").key(key).fingerprint(key);
        call.run(|_| async { Ok::<_, Error>("x".repeat(298)) }).await.unwrap();
    }
}

fn names() -> HashMap<String, String> {
    let names = [
        ("#s", "state"),
        ("#t", "ttl"),
        ("#e", "expires"),
        ("#f", "result"),
        ("#v", "result_version"),
        ("#l", "lease"),
        ("#g", "grace"),
        ("#x", "effects"),
        ("#p", "steps"),
        ("#q", "places"),
    ];
    names.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into()
}

/// How long `callers` take to do `each` of them `times` times.
async fn timed<F>(
    sides: &Sides,
    callers: usize,
    times: usize,
    each: impl Fn(Sides) -> F + Clone + Send + 'static,
) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (sides, each) = (sides.clone(), each.clone());
        tasks.spawn(async move {
            for _ in 0..times {
                each(sides.clone()).await;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    started.elapsed()
}

/// Shows how the rate of `ours` compares with that of `bare`.
async fn compare<A, B>(
    sides: &Sides,
    name: &str,
    bare: impl Fn(Sides) -> A + Clone + Send + 'static,
    ours: impl Fn(Sides) -> B + Clone + Send + 'static,
) where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    for (callers, times) in [(1, 200), (32, 20)] {
        let (mut ratios, mut bests) = (Vec::new(), (Duration::MAX, Duration::MAX));
        for round in 0..ROUNDS {
            // In turns first, so that neither always finds the other's warm caches.
            let (of_bare, of_ours) = if round % 2 == 0 {
                let of_bare = timed(sides, callers, times, bare.clone()).await;
                (of_bare, timed(sides, callers, times, ours.clone()).await)
            } else {
                let of_ours = timed(sides, callers, times, ours.clone()).await;
                (timed(sides, callers, times, bare.clone()).await, of_ours)
            };
            ratios.push(of_bare.as_secs_f64() / of_ours.as_secs_f64());
            bests = (bests.0.min(of_bare), bests.1.min(of_ours));
        }
        ratios.sort_by(f64::total_cmp);
        let count = u32::try_from(callers * times).unwrap();
        println!(
            "{name}, {callers} callers: {:.2} times the rate of the bare requests ({:.0?} against {:.0?} each)",
            ratios.get(ROUNDS / 2).unwrap(),
            bests.1 / count,
            bests.0 / count,
        );
    }
}

#[tokio::main]
async fn main() {
    let Ok(endpoint) = std::env::var("IDEMPOTENT_BENCH_DYNAMODB") else {
        println!("IDEMPOTENT_BENCH_DYNAMODB is not set to the URL of an endpoint: nothing is measured");
        return;
    };
    let sides = Sides::open(&endpoint).await;

    let running = sides.key();
    sides.reserve(&running, OwnerToken::random()).await;
    let get = sides.client.get_item().table_name(sides.store.table());
    let get = get.key("key", AttributeValue::S(running.as_str().to_owned()));
    let item = get.send().await.unwrap().item.unwrap();
    let same = move |sides: Sides| sides.same_cycle(item.clone());
    compare(&sides, "reserve and complete against the same items written by hand", same, Sides::cycle).await;
    compare(&sides, "reserve and complete against two updates", Sides::bare_cycle, Sides::cycle).await;
    compare(&sides, "a whole first call against two updates", Sides::bare_cycle, Sides::call).await;

    let key = sides.key();
    sides.bare_reserve(&key).await;
    sides.bare_complete(&key).await;
    let owner = OwnerToken::random();
    sides.reserve(&key, owner).await;
    sides.complete(&key, owner).await;
    sides.called("replayed").await;
    let (bare, ours) = (key.clone(), key);
    let bare = move |sides: Sides| {
        let key = bare.clone();
        async move { assert!(!sides.bare_reserve(&key).await) }
    };
    let ours = move |sides: Sides| {
        let key = ours.clone();
        async move { assert!(matches!(sides.reserve(&key, OwnerToken::random()).await, Reserved::Held(_))) }
    };
    compare(&sides, "a refused reserve against a refused update", bare.clone(), ours).await;
    let replay = |sides: Sides| async move { sides.called("replayed").await };
    compare(&sides, "a whole replay against a refused update", bare, replay).await;
}
