//! A call, its duplicates, and what they are given.

use std::collections::BTreeMap;
use std::time::Duration;

use idempotent_runtime::store::{Settled, State, Store};
use idempotent_runtime::{Error, Idempotency, OnCrash, Outcome, with_outcome};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tests::{ChargeError, Order, Runs, on_memory, on_memory_with, only_record, records};
use tokio::sync::Barrier;
use tokio::time::advance;

async fn charge(idempotency: &Idempotency, order: &Order, runs: &Runs) -> Result<u32, ChargeError> {
    let call = idempotency.operation("charge").key(&order.id).fingerprint(order);
    call.run(|_| async { Ok(runs.count()) }).await
}

#[tokio::test]
async fn a_duplicate_gets_the_first_result_and_the_body_runs_once() {
    let (idempotency, _) = on_memory();
    let (order, runs) = (Order::new("o-1", 5), Runs::default());
    for expected in [Outcome::Executed, Outcome::Replayed, Outcome::Replayed] {
        let (result, outcome) = with_outcome(charge(&idempotency, &order, &runs)).await;
        assert_eq!((result, outcome), (Ok(1), Some(expected)));
    }
    assert_eq!(runs.total(), 1);
}

#[tokio::test]
async fn a_reservation_is_in_the_store_while_the_body_runs_and_a_result_afterwards() {
    let (idempotency, store) = on_memory();
    let call = idempotency.operation("charge").key("o-1");
    let inside = call.run(|_| async { Ok::<_, Error>(only_record(&store).await.state.is_abandoned()) });
    assert!(!inside.await.unwrap(), "the reservation is live inside the body");
    let record = only_record(&store).await;
    assert!(matches!(record.state, State::Settled(Settled::Completed(_))), "{record:?}");
    assert_eq!(record.key.as_str(), "default/charge/o-1");
    assert_eq!(record.key.operation().as_str(), "charge");
}

#[tokio::test]
async fn two_keys_are_two_records_and_two_runs() {
    let (idempotency, store) = on_memory();
    let runs = Runs::default();
    assert_eq!(charge(&idempotency, &Order::new("o-1", 5), &runs).await, Ok(1));
    assert_eq!(charge(&idempotency, &Order::new("o-2", 5), &runs).await, Ok(2));
    assert_eq!(records(&store).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_ttl_counts_from_completion_and_afterwards_the_body_runs_again() {
    let (idempotency, _) = on_memory_with(|builder| builder.ttl(Duration::from_secs(60)));
    let runs = Runs::default();
    let slow = |runs: Runs| {
        let call = idempotency.operation("charge").key("o-1");
        async move {
            call.run(|_| async {
                tokio::time::sleep(Duration::from_secs(120)).await;
                Ok::<_, Error>(runs.count())
            })
            .await
        }
    };
    assert_eq!(slow(runs.clone()).await.unwrap(), 1);
    advance(Duration::from_millis(59_900)).await;
    assert_eq!(slow(runs.clone()).await.unwrap(), 1, "kept for the whole ttl after completion");
    advance(Duration::from_millis(200)).await;
    assert_eq!(slow(runs.clone()).await.unwrap(), 2, "and not longer");
}

#[tokio::test]
async fn a_forgotten_key_runs_again() {
    let (idempotency, store) = on_memory();
    let (order, runs) = (Order::new("o-1", 5), Runs::default());
    charge(&idempotency, &order, &runs).await.unwrap();
    let record = only_record(&store).await;
    store.forget(&record.key, record.owner).await.unwrap();
    assert_eq!(charge(&idempotency, &order, &runs).await, Ok(2));
}

#[tokio::test]
async fn making_a_handle_and_an_operation_touches_no_store() {
    let (idempotency, store) = on_memory();
    let _ = idempotency.operation("charge").key("o-1").fingerprint(&1);
    drop(idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(()) }));
    assert!(records(&store).await.is_empty());
}

#[tokio::test]
async fn bodies_of_different_keys_run_at_the_same_time() {
    let (idempotency, _) = on_memory();
    let both_inside = Barrier::new(2);
    let slow = |id: &'static str| {
        let call = idempotency.operation("charge").key(id);
        let both_inside = &both_inside;
        async move { call.run(|_| async { Ok::<_, Error>(both_inside.wait().await.is_leader()) }).await.unwrap() }
    };
    let (a, b) = tokio::join!(slow("o-1"), slow("o-2"));
    assert_ne!(a, b);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_callers_at_once_one_runs() {
    let (idempotency, _) = on_memory_with(|builder| builder.wait(Duration::from_secs(10)));
    let runs = Runs::default();
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (idempotency, runs) = (idempotency.clone(), runs.clone());
            tokio::spawn(async move { charge(&idempotency, &Order::new("o-1", 5), &runs).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(1));
    }
    assert_eq!(runs.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_inside_another_that_died_replays_when_that_one_runs_again() {
    let (idempotency, store) = on_memory();
    let (inner_runs, outer_runs) = (Runs::default(), Runs::default());
    let outer = || {
        let operation = idempotency.operation("order").on_crash(OnCrash::Retry);
        operation.key("o-1").run(|attempt| {
            let (idempotency, inner_runs, outer_runs) = (&idempotency, &inner_runs, &outer_runs);
            async move {
                outer_runs.count();
                let inner = idempotency.operation("charge").key("o-1");
                let charged = inner.run(|_| async { Ok::<_, Error>(inner_runs.count()) }).await?;
                if attempt.number() == 1 {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Error>(charged)
            }
        })
    };
    assert!(tokio::time::timeout(Duration::from_millis(1), outer()).await.is_err());
    idempotency.shutdown().await;
    assert_eq!(outer().await.unwrap(), 1);
    assert_eq!((inner_runs.total(), outer_runs.total(), records(&store).await.len()), (1, 2, 2));
}

#[tokio::test]
async fn an_operation_inside_another_has_a_record_and_a_result_of_its_own() {
    let (idempotency, store) = on_memory();
    let runs = Runs::default();
    let outer = || {
        let (charge, mail) = (idempotency.operation("charge"), idempotency.operation("mail"));
        let runs = runs.clone();
        async move {
            charge
                .key("o-1")
                .run(|_| async {
                    let mailed =
                        mail.key("o-1").run(|_| async { Ok::<_, Error>("mailed".to_owned()) }).await?;
                    Ok::<_, Error>((mailed, runs.count()))
                })
                .await
        }
    };
    for expected in [Outcome::Executed, Outcome::Replayed] {
        let (result, outcome) = with_outcome(outer()).await;
        assert_eq!(result.unwrap(), ("mailed".to_owned(), 1));
        assert_eq!(outcome, Some(expected), "of the outer call, not of the one inside");
    }
    let mail = idempotency.operation("mail").key("o-1");
    assert_eq!(mail.run(|_| async { Ok::<_, Error>(String::new()) }).await.unwrap(), "mailed");
    assert_eq!(records(&store).await.len(), 2);
}

#[tokio::test]
async fn of_three_calls_in_each_other_the_failing_one_and_those_around_it_give_their_keys_back() {
    let (idempotency, store) = on_memory();
    let (inner_runs, middle_runs) = (Runs::default(), Runs::default());
    let outer = || async {
        let (order, invoice, mail) =
            ["order", "invoice", "mail"].map(|name| idempotency.operation(name).key("o-1")).into();
        let middle = || async {
            let mailed = mail.run(|_| async { Ok::<_, ChargeError>(inner_runs.count()) }).await?;
            if middle_runs.count() == 1 { Err(ChargeError::GatewayDown) } else { Ok(mailed) }
        };
        order.run(|_| async { invoice.run(|_| middle()).await }).await
    };
    assert_eq!(outer().await, Err(ChargeError::GatewayDown));
    assert_eq!(only_record(&store).await.key.as_str(), "default/mail/o-1");
    assert_eq!(outer().await, Ok(1));
    assert_eq!((inner_runs.total(), middle_runs.total(), records(&store).await.len()), (1, 2, 3));
}

#[tokio::test]
async fn with_outcome_tells_of_the_first_call_only() {
    let (idempotency, _) = on_memory();
    let run = |id: &'static str| {
        let call = idempotency.operation("charge").key(id);
        async move { call.run(|_| async { Ok::<_, Error>(()) }).await }
    };
    run("o-2").await.unwrap();
    let (_, outcome) = with_outcome(async {
        run("o-1").await.unwrap();
        run("o-2").await.unwrap();
    })
    .await;
    assert_eq!(outcome, Some(Outcome::Executed));
    assert_eq!(with_outcome(async {}).await.1, None);
}

/// Stores `value` and reads it back through a replay.
async fn round_trip<T>(value: T)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + Clone,
{
    let (idempotency, _) = on_memory();
    for _ in 0..2 {
        let call = idempotency.operation("any").key("k");
        let given = call.run(|_| async { Ok::<_, Error>(value.clone()) }).await.unwrap();
        assert_eq!(given, value);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { bytes: Vec<u8> },
}

#[tokio::test]
async fn every_kind_of_result_comes_back_as_it_was() {
    round_trip(()).await;
    round_trip(None::<u8>).await;
    round_trip(Some(0u8)).await;
    round_trip(false).await;
    round_trip(String::new()).await;
    round_trip("häßlich \u{0} \u{1f980}".to_owned()).await;
    round_trip(Vec::<u8>::new()).await;
    round_trip(BTreeMap::<String, u8>::new()).await;
    round_trip(BTreeMap::from([(7u64, vec![Some(1), None])])).await;
    round_trip(u64::MAX).await;
    round_trip(u128::MAX).await;
    round_trip(i128::MIN).await;
    round_trip(9_007_199_254_740_993i64).await;
    round_trip(0.1f64 + 0.2).await;
    for shape in
        [Shape::Unit, Shape::Newtype(1), Shape::Tuple(1, "b".into()), Shape::Struct { bytes: vec![0, 255] }]
    {
        round_trip(shape).await;
    }
}

#[tokio::test]
async fn a_changed_replay_does_not_change_the_next() {
    let (idempotency, _) = on_memory();
    let run = || idempotency.operation("list").key("k").run(|_| async { Ok::<_, Error>(vec![1]) });
    let mut first = run().await.unwrap();
    first.push(2);
    let mut second = run().await.unwrap();
    second.push(3);
    assert_eq!(run().await.unwrap(), [1]);
}

#[tokio::test]
async fn the_replay_hook_hears_of_replays_only() {
    let replays = Runs::default();
    let heard = replays.clone();
    let (idempotency, _) = on_memory_with(|builder| {
        builder.on_replay(move |replay| {
            assert_eq!((replay.operation, replay.key.as_str()), ("charge", "default/charge/o-1"));
            heard.count();
        })
    });
    let order = Order::new("o-1", 5);
    charge(&idempotency, &order, &Runs::default()).await.unwrap();
    assert_eq!(replays.total(), 0);
    charge(&idempotency, &order, &Runs::default()).await.unwrap();
    assert_eq!(replays.total(), 1);
}

#[tokio::test]
async fn a_panicking_replay_hook_reaches_its_caller_and_leaves_the_record() {
    let (idempotency, store) = on_memory_with(|builder| builder.on_replay(|_| panic!("hook")));
    let order = Order::new("o-1", 5);
    charge(&idempotency, &order, &Runs::default()).await.unwrap();
    let handle = idempotency.clone();
    let replay = tokio::spawn(async move { charge(&handle, &Order::new("o-1", 5), &Runs::default()).await });
    assert!(replay.await.unwrap_err().is_panic());
    assert!(matches!(only_record(&store).await.state, State::Settled(Settled::Completed(_))));
}

#[tokio::test]
async fn a_disabled_handle_runs_every_time_and_attempts_do_nothing() {
    let idempotency = Idempotency::disabled();
    let (order, runs) = (Order::new("o-1", 5), Runs::default());
    for expected in [1, 2] {
        let call = idempotency.operation("charge").key(&order.id).fingerprint(&order);
        let (result, outcome) = with_outcome(call.run(|attempt| {
            let runs = &runs;
            async move {
                attempt.begin_effects().await?;
                assert_eq!((attempt.key(), attempt.number(), attempt.fencing_token()), (None, 1, 0));
                assert_eq!(idempotent_runtime::attempt()?.number(), 1);
                Ok::<_, Error>(runs.count())
            }
        }))
        .await;
        assert_eq!((result.unwrap(), outcome), (expected, Some(Outcome::Unprotected)));
    }
}

#[tokio::test]
async fn an_attempt_knows_its_key_and_number_and_fence() {
    let (idempotency, _) = on_memory();
    let call = idempotency.operation("charge").key("o-1");
    call.run(|attempt| async move {
        let here = idempotent_runtime::attempt()?;
        assert_eq!(here.key().unwrap().as_str(), "default/charge/o-1");
        assert_eq!((attempt.number(), here.number()), (1, 1));
        assert!(attempt.fencing_token() > 0 && !attempt.is_lost());
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    assert_eq!(idempotent_runtime::attempt().unwrap_err().code(), "no-attempt");
}

#[tokio::test]
async fn every_finite_float_comes_back_to_the_bit() {
    let (idempotency, _) = on_memory();
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..5_000 {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        let float = f64::from_bits(bits);
        let run = || idempotency.operation("any").key(&number).run(|_| async { Ok::<_, Error>(float) });
        if float.is_finite() {
            assert_eq!(
                (run().await.unwrap().to_bits(), run().await.unwrap().to_bits()),
                (bits, bits),
                "{float}"
            );
        }
    }
}
