//! Items with anything in them.

use aws_sdk_dynamodb::types::AttributeValue;
use idempotent_runtime::store::{
    ListQuery, OwnerToken, PutStep, Release, Reserved, State, Step, StepState, Store, StoreErrorKind, Write,
};
use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::*;

const CASES: usize = 300;

const ATTRIBUTES: &[&str] = &[
    "v",
    "operation",
    "state",
    "owner",
    "fingerprint",
    "attempt",
    "fence",
    "lease",
    "grace",
    "expires",
    "ttl",
    "created",
    "effects",
    "steps",
    "places",
    "begun",
    "revision",
    "result",
    "result_version",
];

fn values() -> impl Strategy<Value = AttributeValue> {
    let numbers = select(vec![
        "0",
        "1",
        "-1",
        "1.5",
        "1E+30",
        "255",
        "256",
        "4294967295",
        "4294967296",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999999999",
    ]);
    let leaf = prop_oneof![
        numbers.prop_map(|number| AttributeValue::N(number.into())),
        select(vec!["running", "completed", "failed", "not_retained", "unknown", "x", ""])
            .prop_map(|text| AttributeValue::S(text.into())),
        vec(any::<u8>(), 0..40).prop_map(|bytes| AttributeValue::B(bytes.into())),
        select(vec![16_usize, 33]).prop_map(|len| AttributeValue::B(vec![7; len].into())),
        any::<bool>().prop_map(AttributeValue::Bool),
        Just(AttributeValue::Null(true)),
        Just(AttributeValue::Ss(vec!["one".into()])),
    ];
    leaf.prop_recursive(2, 6, 3, |leaf| {
        prop_oneof![
            hash_map(select(vec!["one", "two", "~", "~x"]).prop_map(str::to_owned), leaf.clone(), 0..3)
                .prop_map(AttributeValue::M),
            vec(leaf, 0..3).prop_map(AttributeValue::L),
        ]
    })
}

/// Whatever is written over a record, nobody is given it who would not have been shown it as free: it reads as a record, or
/// everybody is told that it cannot be read, and it stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_with_anything_in_it_is_read_or_left_alone() {
    let store = builder().open().await.unwrap();
    let damage = vec((select(ATTRIBUTES), values()), 1..3);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut unreadable, mut read) = (0, 0);
    for case in 0..CASES {
        let (k, owner) = (key(&case.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        let step = Step { name: "one".into(), state: StepState::Done(b"1".as_slice().into()) };
        assert_eq!(store.put_step(&k, owner, &step, LEASE).await.unwrap(), PutStep::Stored);
        match case % 3 {
            0 => assert_eq!(store.complete(&k, owner, &completed("x"), KEEP).await.unwrap(), Write::Applied),
            1 => assert_eq!(store.release(&k, owner, Release::Abandon).await.unwrap(), Write::Applied),
            _ => {}
        }
        let damage = damage.new_tree(&mut runner).unwrap().current();
        for (attribute, value) in &damage {
            spoil(&store, &k, attribute, value.clone()).await;
        }
        let before = item(&store, &k).await;
        let loaded = store.load(&k).await;
        let stranger = OwnerToken::random();
        let reserved = store.reserve(request(&k, stranger)).await;
        match loaded {
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{damage:?}: {}", words(&error));
                let reserved = reserved.map(drop).unwrap_err();
                assert_eq!(reserved.kind(), StoreErrorKind::Unreadable, "{damage:?}: {}", words(&reserved));
                assert!(store.release(&k, stranger, Release::Forget).await.is_err(), "{damage:?}");
                assert!(store.forget(&k, stranger).await.is_err(), "{damage:?}");
                assert_eq!(item(&store, &k).await, before, "{damage:?}");
                unreadable += 1;
            }
            Ok(None) => read += 1,
            Ok(Some(record)) => {
                let is_free = record.state.is_abandoned() && record.fingerprint == FINGERPRINT;
                match reserved {
                    Ok(Reserved::Granted(_)) => assert!(is_free, "{damage:?}: {record:?}"),
                    Ok(Reserved::Held(shown)) => assert_eq!(shown.owner, record.owner, "{damage:?}"),
                    // What cannot be counted on any more, such as a revision that is the greatest number.
                    Err(error) => assert!(!error.is_transient(), "{damage:?}: {}", words(&error)),
                }
                assert!(!matches!(record.state, State::Settled(_)) || item(&store, &k).await == before);
                read += 1;
            }
        }
    }
    assert!(unreadable > CASES / 4 && read > CASES / 10, "{unreadable} unreadable, {read} read");
    let mut query = ListQuery::default();
    loop {
        query.after = store.list(&query).await.unwrap().next;
        if query.after.is_none() {
            break;
        }
    }
}
