//! What lies in the table.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::types::AttributeValue;
use idempotent_runtime::store::{
    ListQuery, OwnerToken, PutStep, Release, Settled, State, Step, StepState, Store, StoreErrorKind, Stored,
    Write,
};
use idempotent_runtime::stores::{DynamoDbAttribute, DynamoDbStore};

use crate::support::*;

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.into())
}

#[tokio::test]
async fn unreadable_records_are_left_alone() {
    let store = builder().open().await.unwrap();
    let owner = OwnerToken::random();
    let spoilt = [
        ("v", AttributeValue::N("2".into())),
        ("state", text("paused")),
        ("owner", text("me")),
        ("owner", AttributeValue::B(b"short".as_slice().to_vec().into())),
        ("fence", AttributeValue::N("-1".into())),
        ("attempt", AttributeValue::N("-1".into())),
        ("created", text("yesterday")),
        ("steps", AttributeValue::L(vec![])),
        ("lease", AttributeValue::Null(true)),
        ("fingerprint", AttributeValue::B(vec![1].into())),
        ("expires", text("never")),
    ];
    let keys: Vec<_> = (0..spoilt.len()).map(|n| key(&n.to_string())).collect();
    for (k, (attribute, value)) in keys.iter().zip(spoilt) {
        grant(&store, k, owner).await;
        store.release(k, owner, Release::Abandon).await.unwrap();
        spoil(&store, k, attribute, value).await;
        let before = item(&store, k).await;
        let new = OwnerToken::random();
        let step = Step { name: "one".into(), state: StepState::Begun };
        for error in [
            store.reserve(request(k, new)).await.unwrap_err(),
            store.load(k).await.unwrap_err(),
            store.forget(k, new).await.unwrap_err(),
            store.renew(k, new, LEASE).await.unwrap_err(),
            store.complete(k, new, &completed("x"), KEEP).await.unwrap_err(),
            store.put_step(k, new, &step, LEASE).await.unwrap_err(),
            store.release(k, new, Release::Forget).await.unwrap_err(),
            store.release(k, new, Release::Abandon).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{attribute}: {}", words(&error));
        }
        assert_eq!(item(&store, k).await, before, "{attribute}");
    }
    grant(&store, &key("good"), owner).await;
    assert_eq!(store.list(&ListQuery::default()).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn an_expired_record_of_a_newer_version_is_left_alone() {
    let store = builder().open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    store.complete(&k, owner, &completed("x"), Duration::ZERO).await.unwrap();
    spoil(&store, &k, "v", AttributeValue::N("2".into())).await;
    let error = store.reserve(request(&k, OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(words(&error).contains("version 2"), "{}", words(&error));
    assert_eq!(store.purge(10).await.unwrap(), 0);
    assert!(item(&store, &k).await.is_some());
}

#[tokio::test]
async fn what_is_not_a_record_is_neither_touched_nor_listed() {
    let store = builder().open().await.unwrap();
    let customer = direct().put_item().table_name(store.table()).item("key", text("customer/1"));
    customer.item("expires", AttributeValue::N("1".into())).send().await.unwrap();
    let k = idempotent_runtime::key::RecordKey::new("charge", "customer/1");
    assert_eq!(
        store.reserve(request(&k, OwnerToken::random())).await.unwrap_err().kind(),
        StoreErrorKind::Unreadable
    );
    assert!(store.list(&ListQuery::default()).await.unwrap().records.is_empty());
    assert_eq!(store.purge(10).await.unwrap(), 0);
    assert_eq!(item(&store, &k).await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_time_to_live_is_in_seconds_after_the_expiry() {
    let store = DynamoDbStore::builder(direct()).table(table()).open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    let ttl = async || -> u64 {
        let item = item(&store, &k).await.unwrap();
        item["ttl"].as_n().unwrap().parse().unwrap()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let hour = 3600;
    grant(&store, &k, owner).await;
    let silent = now + LEASE.duration.as_secs() + LEASE.unknown_ttl.as_secs();
    assert!(
        (silent + hour..silent + hour + 20).contains(&ttl().await),
        "a running record is not deleted early"
    );
    store.complete(&k, owner, &completed("x"), KEEP).await.unwrap();
    assert!((now + KEEP.as_secs() + hour..now + KEEP.as_secs() + hour + 20).contains(&ttl().await));

    let described = direct().describe_time_to_live().table_name(store.table()).send().await.unwrap();
    let described = described.time_to_live_description.unwrap();
    assert_eq!(described.attribute_name(), Some("ttl"));
    assert_eq!(described.time_to_live_status().unwrap().as_str(), "ENABLED");
}

#[tokio::test]
async fn the_largest_result_fits_with_the_longest_names() {
    use DynamoDbAttribute as A;
    let mut builder = builder();
    let all = [
        A::Ttl,
        A::Version,
        A::Operation,
        A::State,
        A::Owner,
        A::Fingerprint,
        A::Attempt,
        A::Fence,
        A::Lease,
        A::Grace,
        A::Effects,
        A::Expires,
        A::Created,
        A::Revision,
        A::Steps,
        A::Places,
        A::Begun,
        A::Result,
        A::ResultVersion,
    ];
    for attribute in all {
        builder = builder.attribute(attribute, format!("{:x<64}", format!("{attribute:?}")));
    }
    let store = builder.open().await.unwrap();
    let k = idempotent_runtime::key::RecordKey::new("o".repeat(180), "k".repeat(255));
    let owner = OwnerToken::random();
    grant(&store, &k, owner).await;
    let largest = store.max_result_bytes().unwrap();
    let stored = |len: usize| Settled::Completed(Stored { version: u32::MAX, bytes: vec![7; len].into() });
    let error = store.complete(&k, owner, &stored(410_000), KEEP).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
    assert_eq!(store.complete(&k, owner, &stored(largest), KEEP).await.unwrap(), Write::Applied);
    assert!(store.load(&k).await.unwrap().unwrap().state == State::Settled(stored(largest)));
}

#[tokio::test]
async fn steps_have_any_name() {
    let store = builder().open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let names = ["", "~", "~~", "a.b", "a[0]", "#steps", ":step", "ttl", "SET"];
    for name in names {
        let step = Step { name: name.into(), state: StepState::Done(name.as_bytes().into()) };
        assert_eq!(store.put_step(&k, owner, &step, LEASE).await.unwrap(), PutStep::Stored, "{name}");
    }
    store.release(&k, owner, Release::Forget).await.unwrap();
    let steps = store.load(&k).await.unwrap().unwrap().steps;
    assert_eq!(steps.iter().map(|step| &*step.name).collect::<Vec<_>>(), names);
}

#[tokio::test]
async fn a_long_list_and_a_long_purge_go_on_where_they_stopped() {
    let store = builder().open().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let store = store.clone();
        tasks.spawn(async move {
            let (k, owner) = (key(&n.to_string()), OwnerToken::random());
            grant(&store, &k, owner).await;
            // Most of them are large, so that a page of the server has a few only.
            let settled = completed(&"x".repeat(100_000));
            store
                .complete(&k, owner, &settled, if n % 2 == 0 { KEEP } else { Duration::ZERO })
                .await
                .unwrap();
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let (mut seen, mut query) = (0, ListQuery { limit: 7, ..ListQuery::default() });
    loop {
        let page = store.list(&query).await.unwrap();
        seen += page.records.len();
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(seen, 20);
    let mut purged = Vec::new();
    for _ in 0..8 {
        purged.push(store.purge(3).await.unwrap());
    }
    assert_eq!(purged, [3, 3, 3, 3, 3, 3, 2, 0]);
    assert_eq!(store.list(&ListQuery::default()).await.unwrap().records.len(), 20);

    for after in ["", "x", "5:abc", "3:abcd"] {
        let query = ListQuery { after: Some(after.into()), ..ListQuery::default() };
        assert_eq!(store.list(&query).await.unwrap_err().kind(), StoreErrorKind::Refused, "{after}");
    }
}

#[tokio::test]
async fn names_that_cannot_work_are_refused() {
    for broken in [
        builder().attribute(DynamoDbAttribute::State, ""),
        builder().attribute(DynamoDbAttribute::State, "x".repeat(65)),
        builder().attribute(DynamoDbAttribute::State, "owner"),
        builder().sort_key("key", "idempotency"),
        builder().sort_key("SK", ""),
        builder().table("no such name"),
    ] {
        assert_eq!(broken.open().await.unwrap_err().kind(), StoreErrorKind::Refused);
    }
}
