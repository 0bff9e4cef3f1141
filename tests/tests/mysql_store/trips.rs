//! How often the server is asked, and what it does for it.

use idempotent_runtime::Idempotency;
use idempotent_runtime::store::{OwnerToken, Release, Step, StepState, Store, TakeOver};
use idempotent_runtime::stores::MySqlStore;
use sqlx::Row;
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};

use crate::support::*;

/// A pool of one connection, so that the counters of its session count everything.
async fn one_connection(database: &str) -> MySqlPool {
    let pool = MySqlPoolOptions::new().max_connections(1).test_before_acquire(false);
    pool.connect(&server().database(database)).await.unwrap()
}

async fn counter(pool: &MySqlPool, name: &'static str) -> u64 {
    let row =
        sqlx::query("SHOW SESSION STATUS WHERE Variable_name = ?").bind(name).fetch_one(pool).await.unwrap();
    row.get::<String, _>(1).parse().unwrap()
}

/// How often statements were executed meanwhile, not counting the question itself.
async fn trips<F: Future>(pool: &MySqlPool, work: F) -> (u64, F::Output) {
    let before = counter(pool, "Com_stmt_execute").await;
    let output = work.await;
    (counter(pool, "Com_stmt_execute").await - before - 1, output)
}

#[tokio::test]
async fn every_operation_is_one_round_trip() {
    for procedures in [false, true] {
        let pool = one_connection(if procedures { "trips_by_procedures" } else { "trips" }).await;
        let store = MySqlStore::builder(pool.clone()).procedures(procedures).open().await.unwrap();
        let (k, a, b) = (key("1"), OwnerToken::random(), OwnerToken::random());
        let step = Step { name: "one".into(), state: StepState::Begun };
        let reserve = store.reserve(request(&k, a));
        assert_eq!(trips(&pool, reserve).await.0, 1, "a first call");
        assert_eq!(trips(&pool, store.reserve(request(&k, a))).await.0, 1, "the same again");
        assert_eq!(trips(&pool, store.reserve(request(&k, b))).await.0, 1, "a busy one");
        assert_eq!(trips(&pool, store.renew(&k, a, LEASE)).await.0, 1);
        assert_eq!(trips(&pool, store.begin_effects(&k, a, LEASE)).await.0, 1);
        assert_eq!(trips(&pool, store.put_step(&k, a, &step, LEASE)).await.0, 1);
        assert_eq!(trips(&pool, store.release(&k, a, Release::Abandon)).await.0, 1);
        assert_eq!(trips(&pool, store.reserve(request(&k, b))).await.0, 1, "a take-over");
        assert_eq!(trips(&pool, store.complete(&k, b, &completed("x"), KEEP)).await.0, 1);
        assert_eq!(trips(&pool, store.load(&k)).await.0, 1);
        assert_eq!(trips(&pool, store.forget(&k, b)).await.0, 1);
        assert_eq!(trips(&pool, store.purge(10)).await.0, 1);
    }
}

#[tokio::test]
async fn a_first_call_is_two_round_trips_and_every_duplicate_one() {
    let pool = one_connection("calls").await;
    let store = MySqlStore::builder(pool.clone()).open().await.unwrap();
    let idempotency = Idempotency::builder().store(store).build().unwrap();
    let charge = |amount: u32| {
        let call = idempotency.operation("charge").key("o-1").fingerprint(&amount);
        call.run(move |_| async move { Ok::<_, idempotent_runtime::Error>(amount) })
    };
    let (first, result) = trips(&pool, charge(7)).await;
    assert_eq!((first, result.unwrap()), (2, 7));
    let (replay, result) = trips(&pool, charge(7)).await;
    assert_eq!((replay, result.unwrap()), (1, 7));
    let (mismatch, result) = trips(&pool, charge(8)).await;
    assert_eq!((mismatch, result.unwrap_err().code()), (1, "key-reused"));

    // The connection is free while the body runs: the body itself uses it.
    let call = idempotency.operation("charge").key("o-2");
    let (busy, inside) = call
        .run(|_| async {
            let call = idempotency.operation("charge").key("o-2");
            let other = async {
                tokio::spawn(call.run(|_| async { Ok::<_, idempotent_runtime::Error>((0, 0)) })).await
            };
            let (trips, answer) = trips(&pool, other).await;
            assert_eq!(answer.unwrap().unwrap_err().code(), "in-progress");
            Ok::<_, idempotent_runtime::Error>((trips, 1))
        })
        .await
        .unwrap();
    assert_eq!((busy, inside), (1, 1));
}

#[tokio::test]
async fn what_a_settled_or_living_record_answers_is_read_without_locks_and_writes() {
    let pool = one_connection("lockless").await;
    let store = MySqlStore::new(pool.clone());
    let (settled, running, abandoned) = (key("settled"), key("running"), key("abandoned"));
    for k in [&settled, &running, &abandoned] {
        grant(&store, k, OwnerToken::NOBODY).await;
    }
    store.complete(&settled, OwnerToken::NOBODY, &completed("kept"), KEEP).await.unwrap();
    store.release(&abandoned, OwnerToken::NOBODY, Release::Abandon).await.unwrap();

    let other = MySqlPool::connect(&server().database("lockless")).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    sqlx::query("SELECT * FROM idempotency FOR UPDATE").fetch_all(&mut *transaction).await.unwrap();
    let counters = ["Handler_write", "Handler_update", "Handler_delete", "Handler_prepare"];
    let mut before = Vec::new();
    for name in counters {
        before.push(counter(&pool, name).await);
    }
    let (count, ()) = trips(&pool, async {
        held(&store, &settled).await;
        held(&store, &running).await;
        let careful = idempotent_runtime::store::Reserve {
            take_over: TakeOver::BetweenSteps,
            ..request(&abandoned, OwnerToken::random())
        };
        store.reserve(careful).await.unwrap();
        store.load(&settled).await.unwrap().unwrap();
    })
    .await;
    assert_eq!(count, 4);
    for (name, before) in counters.into_iter().zip(before) {
        // What asking for the counters writes itself, into temporary tables, is all there is.
        let quiet = counter(&pool, name).await;
        let own = counter(&pool, name).await - quiet;
        assert!(quiet - before <= own * 8, "{name}: {before}, then {quiet}, with {own} for every question");
        assert!(name == "Handler_write" || quiet == before, "{name}");
    }
    transaction.rollback().await.unwrap();
}
