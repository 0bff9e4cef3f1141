//! What holds in every database. Each of the modules that has this one says which that is.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::store::{Settled, State, Store};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::{Idempotency, OnCrash, Outcome, attempt, idempotent, step, with_outcome};
use sqlx::{Acquire, Executor, Transaction};
use tests::{Order, only_record, records};

use super::{Connection, Db, INSERT, LEVELS, Pool, Shop, TELLS_ROLLBACK, other_database, shop};
use crate::failure::Failure;

pub(super) async fn post(tx: &mut Connection, order: &Order) -> Result<u64, Failure> {
    let insert = sqlx::query(INSERT);
    insert.bind(order.id.clone()).bind(i64::try_from(order.amount).unwrap()).execute(tx).await?;
    Ok(order.amount)
}

pub(super) async fn postings(pool: &Pool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM postings").fetch_one(pool).await.unwrap()
}

/// On a `Transaction`.
#[idempotent(key = "order.id", name = "charge", transaction = tx)]
pub(super) async fn charge(tx: &mut Transaction<'_, Db>, order: Order) -> Result<u64, Failure> {
    post(tx, &order).await
}

/// The same operation on a connection.
pub(super) async fn charge_on(
    idempotency: &Idempotency,
    tx: &mut Connection,
    order: &Order,
) -> Result<u64, Failure> {
    let call = idempotency.operation("charge").key(&order.id).argument("order", order);
    call.run_in(tx, async |tx, _| post(tx, order).await).await
}

/// The same operation under a lease.
async fn charge_leased(idempotency: &Idempotency, pool: &Pool, order: &Order) -> Result<u64, Failure> {
    let call = idempotency.operation("charge").key(&order.id).argument("order", order);
    call.run(|_| async { post(&mut *pool.acquire().await?, order).await }).await
}

#[tokio::test]
async fn effects_and_record_are_one_commit() {
    let Shop { idempotency, store, pool, .. } = &shop(LEVELS[0]).await;
    let order = Order::new("o-1", 250);
    idempotency
        .within(async {
            let mut tx = pool.begin().await.unwrap();
            let (answer, outcome) = with_outcome(charge(&mut tx, order.clone())).await;
            assert_eq!((answer, outcome), (Ok(250), Some(Outcome::Executed)));
            assert!(records(store).await.is_empty());
            tx.rollback().await.unwrap();
            assert!(records(store).await.is_empty(), "rolled back: as if it never happened");

            for outcome in [Outcome::Executed, Outcome::Replayed, Outcome::Replayed] {
                let mut tx = pool.begin().await.unwrap();
                let answer = with_outcome(charge(&mut tx, order.clone())).await;
                assert_eq!(answer, (Ok(250), Some(outcome)));
                tx.commit().await.unwrap();
            }
            let mut tx = pool.begin().await.unwrap();
            let reused = charge(&mut tx, Order::new("o-1", 999)).await;
            assert_eq!(reused, Err(Failure::Idempotency("key-reused".into())));
            assert_eq!(charge(&mut tx, Order::new("o-2", 1)).await, Ok(1), "it stays usable");
            tx.commit().await.unwrap();
        })
        .await;
    assert_eq!(postings(pool).await, 2);
}

#[tokio::test]
async fn a_duplicate_waits_for_the_commit_and_replays() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let order = Order::new("o-1", 250);
    let mut first = pool.begin().await.unwrap();
    charge_on(idempotency, &mut first, &order).await.unwrap();
    let duplicate = tokio::spawn({
        let (idempotency, pool, order) = (idempotency.clone(), pool.clone(), order.clone());
        async move {
            let mut tx = pool.begin().await.unwrap();
            let answer = with_outcome(charge_on(&idempotency, &mut tx, &order)).await;
            tx.commit().await.unwrap();
            answer
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!duplicate.is_finished());
    first.commit().await.unwrap();
    assert_eq!(duplicate.await.unwrap(), (Ok(250), Some(Outcome::Replayed)));
    assert_eq!(postings(pool).await, 1);
}

#[tokio::test]
async fn a_duplicate_waits_no_longer_than_it_may_and_leaves_its_transaction_usable() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let order = Order::new("o-1", 250);
    let mut first = pool.begin().await.unwrap();
    charge_on(idempotency, &mut first, &order).await.unwrap();
    let mut second = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").wait(Duration::from_millis(100)).key("o-1");
    let call = call.argument("order", &order);
    let answer = call.run_in(&mut second, async |tx: &mut Transaction<'_, Db>, _| post(tx, &order).await);
    assert_eq!(answer.await, Err(Failure::Idempotency("in-progress, retryable".into())));
    first.rollback().await.unwrap();
    assert_eq!(charge_on(idempotency, &mut second, &Order::new("o-2", 1)).await, Ok(1));
    second.commit().await.unwrap();
    assert_eq!(postings(pool).await, 1);
}

#[tokio::test]
async fn an_err_undoes_what_the_body_wrote_and_leaves_the_transaction_usable() {
    let Shop { idempotency, store, pool, .. } = &shop(LEVELS[0]).await;
    let declined = async |tx: &mut Transaction<'_, Db>, _| {
        post(tx, &Order::new("undone", 1)).await?;
        // And the transaction is in an aborted state.
        let _ = tx.execute("NONSENSE").await;
        Err::<u64, _>(Failure::Declined)
    };
    let mut tx = pool.begin().await.unwrap();
    post(&mut tx, &Order::new("kept", 1)).await.unwrap();
    let operation = idempotency.operation("charge");
    let replaying = operation.clone().replay_errors();
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        let answer = with_outcome(replaying.key("replay").run_in(&mut tx, declined)).await;
        assert_eq!(answer, (Err(Failure::Declined), Some(outcome)));
    }
    assert_eq!(operation.key("retry").run_in(&mut tx, declined).await, Err(Failure::Declined));
    let refusing = operation.clone().refuse_after_errors();
    assert_eq!(refusing.key("refuse").run_in(&mut tx, declined).await, Err(Failure::Declined));
    let begun = operation.key("begun").run_in(&mut tx, async |_, attempt| {
        attempt.begin_effects().await?;
        Err::<u64, _>(Failure::Declined)
    });
    assert_eq!(begun.await, Err(Failure::Declined));
    tx.commit().await.unwrap();
    assert_eq!(postings(pool).await, 1);
    let mut states: Vec<_> = records(store).await.iter().map(|record| record.state.name().as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["failed", "unknown", "unknown"]);
    let mut tx = pool.begin().await.unwrap();
    let refused = refusing.key("refuse").run_in(&mut tx, declined).await;
    assert_eq!(refused, Err(Failure::Idempotency("outcome-unknown".into())));
}

#[tokio::test]
async fn a_call_that_was_dropped_is_unknown_if_its_transaction_is_committed_all_the_same() {
    let Shop { idempotency, store, pool, .. } = &shop(LEVELS[0]).await;
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let hung = call.run_in(&mut tx, async |tx: &mut Transaction<'_, Db>, _| {
        post(tx, &Order::new("o-1", 1)).await?;
        std::future::pending::<Result<u64, Failure>>().await
    });
    assert!(tokio::time::timeout(Duration::from_millis(300), hung).await.is_err());
    tx.commit().await.unwrap();
    assert!(only_record(store).await.state.is_abandoned());
    // Nor may a call under a lease try again, unless it may after effects.
    for policy in [OnCrash::Refuse, OnCrash::RetryBeforeEffects] {
        let call = idempotency.operation("charge").on_crash(policy).key("o-1");
        let answer = call.run(|_| async { Ok::<u64, Failure>(2) }).await;
        assert_eq!(answer, Err(Failure::Idempotency("outcome-unknown".into())), "{policy:?}");
    }
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    let answer = call.run_in(&mut tx, async |_, _| Ok::<u64, Failure>(2)).await;
    assert_eq!(answer, Err(Failure::Idempotency("outcome-unknown".into())));
}

#[tokio::test]
async fn an_operation_may_be_called_both_ways_and_runs_once() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    // First in a transaction, then under a lease, which comes while the transaction is open.
    let order = Order::new("o-1", 250);
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(charge_on(idempotency, &mut tx, &order).await, Ok(250));
    let leased = tokio::spawn({
        let (idempotency, pool, order) = (idempotency.clone(), pool.clone(), order.clone());
        async move { with_outcome(charge_leased(&idempotency, &pool, &order)).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!leased.is_finished());
    tx.commit().await.unwrap();
    assert_eq!(leased.await.unwrap(), (Ok(250), Some(Outcome::Replayed)));
    // First under a lease.
    let order = Order::new("o-2", 250);
    assert_eq!(charge_leased(idempotency, pool, &order).await, Ok(250));
    let mut tx = pool.begin().await.unwrap();
    let replayed = with_outcome(charge_on(idempotency, &mut tx, &order)).await;
    assert_eq!(replayed, (Ok(250), Some(Outcome::Replayed)));
    tx.commit().await.unwrap();
    assert_eq!(postings(pool).await, 2);
}

#[tokio::test]
async fn a_dead_attempt_is_followed_where_the_policy_allows_and_no_steps_are_lost() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let crash = async |key: &'static str, with_step: bool| {
        let call = idempotency.operation("charge").on_crash(OnCrash::Retry).key(key);
        let hung = call.run(|attempt| async move {
            if with_step {
                attempt.step("one", || async { Ok::<_, Failure>(1) }).await?;
            }
            std::future::pending::<Result<u64, Failure>>().await
        });
        assert!(tokio::time::timeout(Duration::from_millis(300), hung).await.is_err());
        idempotency.shutdown().await;
    };
    crash("plain", false).await;
    crash("steps", true).await;
    let mut tx = pool.begin().await.unwrap();
    let retrying = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let run = async |_: &mut Transaction<'_, Db>, attempt: idempotent_runtime::Attempt| {
        Ok::<_, Failure>(u64::from(attempt.number()))
    };
    let refused = Err(Failure::Idempotency("outcome-unknown".into()));
    assert_eq!(idempotency.operation("charge").key("plain").run_in(&mut tx, run).await, refused);
    assert_eq!(retrying.key("plain").run_in(&mut tx, run).await, Ok(2));
    assert_eq!(retrying.key("steps").run_in(&mut tx, run).await, refused);
    tx.commit().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(retrying.key("plain").run_in(&mut tx, run).await, Ok(2));
}

#[tokio::test]
async fn a_result_that_has_expired_makes_room_for_a_new_one() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let operation = idempotency.operation("charge").ttl(Duration::from_millis(1));
    let mut fence = 0;
    for _ in 0..3 {
        let mut tx = pool.begin().await.unwrap();
        let call = operation
            .key("o-1")
            .run_in(&mut tx, async |_, attempt| Ok::<_, Failure>(attempt.fencing_token()));
        let next = call.await.unwrap();
        assert!(next > fence);
        fence = next;
        tx.commit().await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_body_that_ends_the_transaction_is_an_error_and_no_promise() {
    let Shop { idempotency, store, pool, .. } = &shop(LEVELS[0]).await;
    let error = Err(Failure::Idempotency("transaction".into()));
    for (n, statements) in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"].into_iter().enumerate()
    {
        for failing in [false, true] {
            let key = format!("o-{n}-{failing}");
            let mut connection = pool.acquire().await.unwrap();
            connection.execute("BEGIN").await.unwrap();
            let call = idempotency.operation("charge").key(&key);
            let answer = call.run_in(&mut *connection, async |tx, _| {
                post(tx, &Order::new("o", 1)).await?;
                tx.execute(statements).await?;
                if failing { Err(Failure::Declined) } else { Ok::<u64, Failure>(1) }
            });
            let rolled_back = statements.starts_with("ROLLBACK") && failing && TELLS_ROLLBACK;
            let wanted = if rolled_back { Err(Failure::Declined) } else { error.clone() };
            assert_eq!(answer.await, wanted, "{statements}");
            let _ = connection.execute("COMMIT").await;
        }
    }
    // Where the body has committed, nobody can say that it did not happen.
    let records = records(store).await;
    assert_eq!(records.len(), 4, "{records:?}");
    assert!(records.iter().all(|record| record.state.is_abandoned()), "{records:?}");
}

#[tokio::test]
async fn what_cannot_carry_a_call_is_refused_before_the_body() {
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let run = async |_: &mut Connection, _| -> Result<u64, Failure> { panic!("the body runs") };
    let code = |code: &str| Err(Failure::Idempotency(code.to_owned()));
    // No transaction.
    let mut connection = pool.acquire().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    assert_eq!(call.run_in(&mut *connection, run).await, code("transaction"));
    // Stores that keep no records in SQL, and none.
    let mut tx = pool.begin().await.unwrap();
    for handle in [Idempotency::new(MemoryStore::new()), Idempotency::disabled()] {
        let call = handle.operation("charge").key("o-1");
        assert_eq!(call.run_in(&mut *tx, run).await, code("not-configured"));
    }
    // Another database, without the table.
    let other = other_database().await;
    let mut tx = other.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    assert_eq!(call.run_in(&mut *tx, run).await, code("store-unavailable"));
    tx.execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn a_body_has_an_attempt_and_no_steps_and_may_call_others() {
    let Shop { idempotency, store, pool, .. } = &shop(LEVELS[0]).await;
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("outer").key("o-1");
    let answer =
        call.run_in(&mut tx, async |tx: &mut Transaction<'_, Db>, attempt: idempotent_runtime::Attempt| {
            assert_eq!(self::attempt()?.number(), 1);
            assert!(attempt.fencing_token() > 0 && !attempt.downstream_key("gateway").is_empty());
            let refused = step("one", || async { panic!("the step runs") as Result<u64, Failure> }).await;
            assert_eq!(refused, Err(Failure::Idempotency("step".into())));
            // In a transaction of its own inside this one, too.
            let mut inner = tx.begin().await?;
            let answer = charge_on(idempotency, &mut inner, &Order::new("o-1", 5)).await?;
            inner.commit().await?;
            let failed = idempotency.operation("inner").key("o-1").run_in(tx, async |tx, _| {
                post(&mut *tx, &Order::new("undone", 1)).await?;
                Err::<u64, _>(Failure::Declined)
            });
            assert_eq!(failed.await, Err(Failure::Declined));
            let again = idempotency
                .operation("outer")
                .key("o-1")
                .run_in(tx, async |_, _| Ok::<u64, Failure>(1))
                .await;
            assert_eq!(again, Err(Failure::Idempotency("reentrant".into())));
            Ok::<u64, Failure>(answer)
        });
    assert_eq!(answer.await, Ok(5));
    tx.commit().await.unwrap();
    assert_eq!((postings(pool).await, records(store).await.len()), (1, 2));
}

#[tokio::test]
async fn every_isolation_level_runs_each_key_once() {
    for level in LEVELS {
        let Shop { idempotency, store, pool, .. } = &shop(level).await;
        let calls = (0..64).map(|n| {
            let (idempotency, pool) = (idempotency.clone(), pool.clone());
            tokio::spawn(async move {
                let order = Order::new(&format!("o-{}", n % 8), n % 8);
                idempotency
                    .transaction(&pool, |tx| {
                        let order = order.clone();
                        Box::pin(async move {
                            let count = sqlx::query_scalar("SELECT count(*) FROM postings");
                            let _: i64 = count.fetch_one(&mut **tx).await?;
                            charge(tx, order).await
                        })
                    })
                    .await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap().unwrap();
        }
        assert_eq!(postings(pool).await, 8, "{level}");
        let records = records(store).await;
        assert!(records.iter().all(|record| matches!(record.state, State::Settled(Settled::Completed(_)))));
    }
}

#[tokio::test]
async fn a_whole_that_fails_is_rolled_back_and_not_begun_again() {
    let Shop { idempotency, store, pool, .. } = &shop(LEVELS[0]).await;
    let mut runs = 0;
    let answer: Result<u64, _> = idempotency
        .transaction(pool, |tx| {
            runs += 1;
            Box::pin(async move {
                charge(tx, Order::new("o-1", 1)).await?;
                Err(Failure::Declined)
            })
        })
        .await;
    assert_eq!((answer, runs), (Err(Failure::Declined), 1));
    assert_eq!((postings(pool).await, records(store).await.len()), (0, 0));
}

#[tokio::test]
async fn a_wrapped_store_carries_calls_as_the_store_in_it_does() {
    let Shop { store, pool, .. } = &shop(LEVELS[0]).await;
    let wrapped: Arc<dyn Store> = Arc::new(store.clone());
    let idempotency = &Idempotency::new(wrapped);
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(charge_on(idempotency, &mut tx, &Order::new("o-1", 1)).await, Ok(1));
}
