//! What lies in the table: versions, records that cannot be read, times, lists, purging.

use std::time::Duration;

use idempotent_runtime::store::{
    Lease, ListQuery, OwnerToken, Reserve, Reserved, State, Step, StepState, Store, StoreErrorKind,
};
use idempotent_runtime::stores::{PostgresStore, SqlColumn};
use tests::servers::postgres::shared;

use crate::support::*;

#[tokio::test]
async fn the_table_is_made_when_a_call_finds_none() {
    let url = shared().database();
    let store = PostgresStore::new(pool(&url));
    assert_eq!(shared().psql(&url, "SELECT to_regclass('idempotency') IS NULL"), "t");
    assert!(store.load(&key("1")).await.unwrap().is_none());
    grant(&store, &key("1"), OwnerToken::random()).await;

    shared().psql(&url, "DROP TABLE idempotency");
    let one = PostgresStore::builder(pool(&url)).batch(8).build().unwrap();
    let two = PostgresStore::new(pool(&url));
    let (k1, k2) = (key("1"), key("2"));
    let (one, two) = tokio::join!(
        one.reserve(request(&k1, OwnerToken::random())),
        two.reserve(request(&k2, OwnerToken::random()))
    );
    assert!(matches!((one.unwrap(), two.unwrap()), (Reserved::Granted(_), Reserved::Granted(_))));
}

#[tokio::test]
async fn a_missing_table_is_named_when_the_store_may_not_make_it() {
    let url = shared().database();
    let builder = PostgresStore::builder(pool(&url)).create_schema(false).table("calls");
    let store = builder.clone().build().unwrap();
    let later = store.load(&key("1")).await.unwrap_err();
    let first = builder.clone().open().await.unwrap_err();
    for error in [later, first] {
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        assert!(words(&error).contains("PostgresStoreBuilder::schema"), "{}", words(&error));
    }
    shared().psql(&url, &builder.schema().unwrap());
    grant(&store, &key("1"), OwnerToken::random()).await;
    builder.open().await.unwrap();
}

#[tokio::test]
async fn only_the_names_that_were_given_are_used() {
    let url = shared().database();
    let builder = PostgresStore::builder(pool(&url))
        .table("calls")
        .column(SqlColumn::Key, "idempotency_key")
        .column(SqlColumn::Result, "answer");
    let store = builder.open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    store.complete(&k, owner, &completed("yes"), KEEP).await.unwrap();
    let row = "SELECT idempotency_key, convert_from(answer, 'UTF8') FROM calls";
    assert_eq!(shared().psql(&url, row), "test/charge/1|yes");
    for name in ["a b", "x\"; DROP TABLE y", ""] {
        let error = PostgresStore::builder(pool(&url)).table(name).build().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        assert!(PostgresStore::builder(pool(&url)).channel(name).build().is_err());
    }
}

#[tokio::test]
async fn a_newer_table_is_refused_and_newer_records_are_left_alone() {
    let url = shared().database();
    let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    let lease = Lease { duration: Duration::ZERO, unknown_ttl: Duration::ZERO };
    store.reserve(Reserve { lease, ..request(&k, owner) }).await.unwrap();
    for change in ["version = 2", "version = 1, state = 'paused'", "state = 'running', owner = 'short'"] {
        shared().psql(&url, &format!("UPDATE idempotency SET {change}"));
        let before = shared().psql(&url, "SELECT * FROM idempotency");
        // It is expired as well, and still nobody may write over it.
        let error = store.reserve(request(&k, OwnerToken::random())).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{change}");
        assert_eq!(store.load(&k).await.unwrap_err().kind(), StoreErrorKind::Unreadable);
        let _ = store.complete(&k, owner, &completed("x"), KEEP).await;
        let _ = store.forget(&k, owner).await;
        assert_eq!(store.purge(10).await.unwrap(), 0);
        assert_eq!(shared().psql(&url, "SELECT * FROM idempotency"), before, "{change}");
    }
    shared().psql(&url, "UPDATE idempotency SET expires_at = now() + interval '1 hour'");
    grant(&store, &key("2"), OwnerToken::random()).await;
    assert_eq!(store.list(&ListQuery::default()).await.unwrap().records.len(), 1);

    shared().psql(&url, "COMMENT ON TABLE idempotency IS 'idempotent-runtime: table version 2'");
    let error = PostgresStore::builder(pool(&url)).open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("version 2"), "{}", words(&error));
}

#[tokio::test]
async fn fences_grow_across_generations() {
    let url = shared().database();
    let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
    let (k, mut last) = (key("1"), 0);
    for round in 0..4 {
        let owner = OwnerToken::random();
        let fence = grant(&store, &k, owner).await.fence;
        assert!(fence > last);
        last = fence;
        store.complete(&k, owner, &completed("x"), Duration::ZERO).await.unwrap();
        if round == 1 {
            // A clock that has been set back does not take the fence with it.
            last += 1_000_000_000_000;
            shared().psql(&url, &format!("UPDATE idempotency SET fence = {last}"));
        }
    }
    assert!(last > 1_000_000_000_000);
}

#[tokio::test]
async fn sub_second_spans_are_exact() {
    let store = store().await;
    let k = key("1");
    let lease = Lease { duration: Duration::from_micros(700), unknown_ttl: Duration::from_secs(60) };
    store.reserve(Reserve { lease, ..request(&k, OwnerToken::random()) }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let record = store.load(&k).await.unwrap().unwrap();
    assert!(record.state.is_abandoned());
    assert!(record.expires_in < Duration::from_secs(60) && record.expires_in > Duration::from_secs(59));
}

#[tokio::test]
async fn steps_lie_in_the_row_of_their_record() {
    let url = shared().database();
    for prepared in [true, false] {
        let builder = PostgresStore::builder(pool(&url)).prepared_statements(prepared);
        let store = builder.open().await.unwrap();
        let (k, owner) = (key(&prepared.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        let names = ["NULL", "", "a,b", "{}", "\"q\"", "back\\slash", "$1", "ünï"];
        for name in names {
            let step = Step { name: name.into(), state: StepState::Done(name.as_bytes().into()) };
            store.put_step(&k, owner, &step, LEASE).await.unwrap();
        }
        let steps = store.load(&k).await.unwrap().unwrap().steps;
        for (step, name) in steps.iter().zip(names) {
            assert_eq!((&*step.name, &step.state), (name, &StepState::Done(name.as_bytes().into())));
        }
        assert_eq!(steps.len(), names.len());
        let nul = Step { name: "a\0b".into(), state: StepState::Begun };
        assert_eq!(store.put_step(&k, owner, &nul, LEASE).await.unwrap_err().kind(), StoreErrorKind::Refused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn purging_keeps_to_its_limit_and_to_expired_records() {
    let url = shared().database();
    let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
    grant(&store, &key("first"), OwnerToken::random()).await;
    // 5,000 expired records among as many that are not, and one that a transaction holds.
    shared().psql(
        &url,
        "INSERT INTO idempotency SELECT 1, 1, now(), NULL, now() + interval '1 hour' * (-1 + (n % 2) * 2), 1, 1, 1, \
         false, false, 'completed', 'k' || n, 'charge', decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), \
         'hex'), NULL, NULL, 'x' FROM generate_series(1, 10000) n",
    );
    assert_eq!(store.purge(0).await.unwrap(), 0);
    assert_eq!(store.purge(1500).await.unwrap(), 1500);
    let mut other = shared_transaction(&url).await;
    let locked = "SELECT key FROM idempotency WHERE expires_at < now() LIMIT 1 FOR UPDATE";
    sqlx::query(locked).fetch_one(&mut *other).await.unwrap();
    let two = PostgresStore::builder(pool(&url)).open().await.unwrap();
    let (one, two) = tokio::join!(store.purge(usize::MAX), two.purge(usize::MAX));
    assert_eq!(one.unwrap() + two.unwrap(), 3499);
    other.rollback().await.unwrap();
    assert_eq!(store.purge(usize::MAX).await.unwrap(), 1);
    assert_eq!(shared().psql(&url, "SELECT count(*) FROM idempotency"), "5001");
}

async fn shared_transaction(url: &str) -> sqlx::Transaction<'static, sqlx::Postgres> {
    pool(url).begin().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_table_works() {
    let url = shared().database();
    let builder = PostgresStore::builder(pool(&url)).create_schema(false);
    let schema = builder.schema().unwrap();
    let (columns, rest) = schema.split_once(") WITH (").unwrap();
    let rest = rest.split_once(';').unwrap().1;
    let parts: Vec<String> = (0..4)
        .map(|n| {
            format!(
                "CREATE TABLE part_{n} PARTITION OF idempotency FOR VALUES WITH (modulus 4, remainder {n}) \
             WITH (fillfactor = 50);"
            )
        })
        .collect();
    shared().psql(&url, &format!("{columns}) PARTITION BY HASH (key); {} {rest}", parts.concat()));
    let store = builder.open().await.unwrap();
    for n in 0..40 {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        let keep = if n % 2 == 0 { KEEP } else { Duration::ZERO };
        store.complete(&k, owner, &completed("x"), keep).await.unwrap();
    }
    assert_eq!(store.purge(7).await.unwrap(), 7);
    assert_eq!(store.purge(100).await.unwrap(), 13);
    let page = store.list(&ListQuery::default()).await.unwrap();
    assert_eq!(page.records.len(), 20);
    assert!(page.records.iter().all(|record| matches!(record.state, State::Settled(_))));
}

/// The time of creation does not tell these apart, and a page may end among them.
#[tokio::test]
async fn records_of_one_moment_are_all_listed_once() {
    let store = store().await;
    for n in 0..10 {
        grant(&store, &key(&n.to_string()), OwnerToken::random()).await;
    }
    sqlx::query("UPDATE idempotency SET created_at = timestamptz '2026-01-01 00:00:00.123456Z'")
        .execute(store.pool())
        .await
        .unwrap();
    for limit in [1, 3, 9] {
        let mut query = ListQuery { limit, ..ListQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = store.list(&query).await.unwrap();
            seen.extend(page.records.into_iter().map(|record| record.key.as_str().to_owned()));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..10).map(|n| format!("test/charge/{n}")).collect::<Vec<_>>(), "{limit} a page");
    }
}
