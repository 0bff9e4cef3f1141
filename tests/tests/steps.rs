//! Bodies that are done in steps, each of which is done once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, ManualClock, Operation};
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, idempotent, step};
use tests::{ChargeError, Order, on_memory, only_record, poll_times};

/// What was done, in order.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    fn write(&self, effect: &str) -> usize {
        let mut entries = self.0.lock().unwrap();
        entries.push(effect.to_owned());
        entries.len()
    }

    fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Where a body stops, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    Never,
    Between,
    Inside,
    Error,
}

/// Two steps; the attempt stops at the second one.
async fn two_steps(
    idempotency: &Idempotency,
    policy: OnCrash,
    ledger: &Ledger,
    stop: Stop,
) -> Result<usize, ChargeError> {
    let call = idempotency.operation("order").on_crash(policy).key("o-1");
    let body = |attempt: Attempt| async move {
        let first = attempt.step("stock", || async { Ok::<_, ChargeError>(ledger.write("stock")) }).await?;
        match stop {
            Stop::Between => std::future::pending().await,
            Stop::Error => return Err(ChargeError::GatewayDown),
            Stop::Never | Stop::Inside => {}
        }
        let second = attempt.step("charge", || async {
            let written = ledger.write("charge");
            if stop == Stop::Inside {
                std::future::pending::<()>().await;
            }
            Ok::<_, ChargeError>(written)
        });
        Ok(first * 10 + second.await?)
    };
    let answer = tokio::time::timeout(Duration::from_secs(1), call.run(body)).await;
    idempotency.shutdown().await;
    answer.unwrap_or(Err(ChargeError::code("dropped")))
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_goes_on_after_the_steps_that_are_done() {
    let unknown = Err(ChargeError::code("outcome-unknown"));
    for (policy, stop, expected, effects) in [
        (OnCrash::Refuse, Stop::Between, Ok(12), 2),
        (OnCrash::Refuse, Stop::Inside, unknown.clone(), 2),
        (OnCrash::Refuse, Stop::Error, Ok(12), 2),
        (OnCrash::RetryBeforeEffects, Stop::Between, Ok(12), 2),
        (OnCrash::RetryBeforeEffects, Stop::Inside, unknown, 2),
        (OnCrash::Retry, Stop::Between, Ok(12), 2),
        (OnCrash::Retry, Stop::Inside, Ok(13), 3),
        (OnCrash::Retry, Stop::Error, Ok(12), 2),
    ] {
        let (idempotency, _) = on_memory();
        let ledger = Ledger::default();
        assert!(two_steps(&idempotency, policy, &ledger, stop).await.is_err());
        let answer = two_steps(&idempotency, policy, &ledger, Stop::Never).await;
        assert_eq!(answer, expected, "{policy:?}, stopped: {stop:?}");
        assert_eq!(ledger.entries().len(), effects, "{policy:?}, stopped: {stop:?}: {:?}", ledger.entries());
        assert_eq!(two_steps(&idempotency, policy, &ledger, Stop::Never).await, expected);
    }
}

#[tokio::test]
async fn a_step_is_written_once_or_twice_and_read_with_the_reservation() {
    for (policy, writes) in [(OnCrash::Retry, 2), (OnCrash::Refuse, 4)] {
        let store = Faults::new(MemoryStore::new());
        let idempotency = Idempotency::new(store.clone());
        let ledger = Ledger::default();
        assert_eq!(two_steps(&idempotency, policy, &ledger, Stop::Never).await, Ok(12));
        assert_eq!(store.count(Operation::PutStep), writes, "{policy:?}");
        assert_eq!((store.count(Operation::Load), store.count(Operation::Reserve)), (0, 1));
    }
}

/// Runs a body of steps and gives its answer, as one attempt of many.
async fn attempt_of<F: Future<Output = Result<u32, Error>>>(
    idempotency: &Idempotency,
    body: impl FnOnce(Attempt) -> F,
) -> Result<u32, Error> {
    idempotency.operation("order").on_crash(OnCrash::Retry).key("o-1").run(body).await
}

fn done(value: u32) -> impl Future<Output = Result<u32, Error>> {
    std::future::ready(Ok(value))
}

#[tokio::test]
async fn a_name_is_used_once_unless_it_is_numbered() {
    let (idempotency, _) = on_memory();
    let answer = attempt_of(&idempotency, |attempt| async move {
        attempt.step("a", || done(1)).await?;
        attempt.step("a", || done(2)).await
    });
    let error = answer.await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("step_n")), ("step", true), "{error}");

    let (idempotency, _) = on_memory();
    let answer = attempt_of(&idempotency, |attempt| async move {
        let mut sum = 0;
        for n in 0..3 {
            sum += attempt.step_n("a", n, || done(10)).await?;
        }
        Ok(sum)
    });
    assert_eq!(answer.await.unwrap(), 30);
}

#[tokio::test]
async fn a_name_that_not_every_store_could_keep_is_an_error_before_the_step_runs() {
    for name in ["n".repeat(256), "a\0b".to_owned()] {
        let store = Faults::new(MemoryStore::new());
        let idempotency = Idempotency::new(store.clone());
        let answer = attempt_of(&idempotency, |attempt| async move {
            attempt.step(&name, || async { panic!("it must not run") }).await
        });
        let error = answer.await.unwrap_err();
        assert_eq!((error.code(), error.to_string().contains("255 bytes")), ("step", true), "{error}");
        assert_eq!(store.count(Operation::PutStep), 0);
    }
    let (idempotency, _) = on_memory();
    let longest = "n".repeat(255);
    let answer = attempt_of(&idempotency, |attempt| async move { attempt.step(&longest, || done(1)).await });
    assert_eq!(answer.await.unwrap(), 1);
}

#[tokio::test]
async fn a_step_that_failed_may_be_tried_again() {
    let (idempotency, _) = on_memory();
    let answer = attempt_of(&idempotency, |attempt| async move {
        let failed = attempt.step("a", || async { Err::<u32, _>(Error::NoAttempt) }).await;
        assert_eq!(failed.unwrap_err().code(), "no-attempt");
        attempt.step("a", || done(2)).await
    });
    assert_eq!(answer.await.unwrap(), 2);
}

#[tokio::test]
async fn a_renamed_step_is_an_error_and_not_a_second_effect() {
    let (idempotency, _) = on_memory();
    let first = attempt_of(&idempotency, |attempt| async move {
        attempt.step("capture", || done(1)).await?;
        Err(Error::NoAttempt)
    });
    assert!(first.await.is_err());
    let effects = Ledger::default();
    let second = attempt_of(&idempotency, |attempt| {
        let effects = &effects;
        async move {
            let body = || async { Ok::<_, Error>(effects.write("captured again")) };
            attempt.step("capture-payment", body).await.map(|_| 2)
        }
    });
    let error = second.await.unwrap_err();
    assert_eq!(error.code(), "step");
    assert!(error.to_string().contains("`capture`"), "{error}");
    assert!(effects.entries().is_empty());
}

#[tokio::test]
async fn parallel_steps_get_their_own_results_whichever_was_done() {
    for done_first in ["a", "b", "c"] {
        let (idempotency, _) = on_memory();
        let ledger = Ledger::default();
        let first = attempt_of(&idempotency, |attempt| async move {
            attempt.step(done_first, || async { Ok::<_, Error>(done_first.to_owned()) }).await?;
            Err(Error::NoAttempt)
        });
        assert!(first.await.is_err());
        let second = attempt_of(&idempotency, |attempt| {
            let ledger = &ledger;
            async move {
                let one = |name: &'static str| {
                    let attempt = attempt.clone();
                    // The step is made in the branch, not before it.
                    async move {
                        let body = || async {
                            tokio::task::yield_now().await;
                            ledger.write(name);
                            Ok::<_, Error>(name.to_owned())
                        };
                        attempt.step(name, body).await
                    }
                };
                let (a, b, c) = tokio::try_join!(one("a"), one("b"), one("c"))?;
                assert_eq!((a.as_str(), b.as_str(), c.as_str()), ("a", "b", "c"));
                Ok(1)
            }
        });
        assert_eq!(second.await.unwrap(), 1, "{done_first} was done");
        assert_eq!(ledger.entries().len(), 2);
    }
}

#[tokio::test]
async fn an_attempt_that_lost_its_lease_runs_and_records_no_step() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let idempotency = Idempotency::new(store);
    let ledger = Ledger::default();
    let operation = idempotency.operation("order").key("o-1");
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let mut zombie = Box::pin(operation.run(|attempt| {
        let ledger = &ledger;
        async move {
            attempt.step("a", || async { Ok::<_, Error>(ledger.write("a")) }).await?;
            let _ = gone.await;
            attempt.step("b", || async { Ok::<_, Error>(ledger.write("b of a zombie")) }).await
        }
    }));
    let pending =
        std::thread::scope(|scope| scope.spawn(|| poll_times(zombie.as_mut(), 1).is_pending()).join());
    assert!(pending.unwrap());
    clock.advance(Duration::from_secs(31));
    let next = idempotency.operation("order").key("o-1").run(|attempt| {
        let ledger = &ledger;
        async move {
            attempt.step("a", || async { Ok::<_, Error>(ledger.write("a again")) }).await?;
            attempt.step("b", || async { Ok::<_, Error>(ledger.write("b")) }).await
        }
    });
    assert_eq!(next.await.unwrap(), 2);
    go.send(()).unwrap();
    assert_eq!(zombie.await.unwrap_err().code(), "lease-lost");
    assert_eq!(ledger.entries(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_result_cannot_be_stored_is_in_doubt() {
    for (policy, expected) in [(OnCrash::Refuse, "outcome-unknown"), (OnCrash::Retry, "runs")] {
        // The second write of a step is that of its result; under "retry" it is the first.
        let nth = if policy == OnCrash::Refuse { 2 } else { 1 };
        let store = Faults::new(MemoryStore::new());
        for n in nth..nth + 50 {
            store.plan_nth(Operation::PutStep, n, Fault::LoseRequest);
        }
        let idempotency = Idempotency::new(store.clone());
        let operation = idempotency.operation("order").on_crash(policy);
        let first = operation.key("o-1").run(|attempt| async move { attempt.step("a", || done(1)).await });
        assert_eq!(first.await.unwrap_err().code(), "store-unavailable");
        store.heal();
        let second =
            operation.key("o-1").run(|attempt| async move { attempt.step("a", || done(2)).await }).await;
        assert_eq!(second.as_ref().map_or_else(Error::code, |_| "runs"), expected, "{policy:?}");
    }
}

#[tokio::test]
async fn a_lost_reply_to_a_step_is_asked_again() {
    let store = Faults::new(MemoryStore::new()).nth(Operation::PutStep, 1, Fault::LoseReply).nth(
        Operation::PutStep,
        3,
        Fault::LoseReply,
    );
    let idempotency = Idempotency::new(store);
    let ledger = Ledger::default();
    assert_eq!(two_steps(&idempotency, OnCrash::Refuse, &ledger, Stop::Never).await, Ok(12));
    assert_eq!(ledger.entries(), ["stock", "charge"]);
}

#[tokio::test]
async fn a_step_of_another_type_or_version_is_unreadable() {
    let (idempotency, _) = on_memory();
    let first = attempt_of(&idempotency, |attempt| async move {
        attempt.step("a", || async { Ok::<_, Error>("secret".to_owned()) }).await?;
        Err(Error::NoAttempt)
    });
    assert!(first.await.is_err());
    let second = attempt_of(&idempotency, |attempt| async move { attempt.step("a", || done(1)).await });
    let error = second.await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("secret")), ("unreadable", false), "{error}");
    let newer = idempotency.operation("order").on_crash(OnCrash::Retry).version(2).key("o-1");
    let third = newer
        .run(|attempt| async move { attempt.step("a", || async { Ok::<_, Error>("x".to_owned()) }).await });
    assert_eq!(third.await.unwrap_err().code(), "unreadable");
}

#[idempotent(key = "order.id")]
async fn checkout(order: &Order) -> Result<String, ChargeError> {
    let stock = step("stock", || async { Ok::<_, ChargeError>(order.amount) }).await?;
    Ok(format!("{stock}"))
}

#[tokio::test]
async fn steps_work_in_annotated_functions_and_where_there_is_no_protection() {
    let (idempotency, store) = on_memory();
    let order = Order::new("o-1", 5);
    assert_eq!(idempotency.within(checkout(&order)).await.as_deref(), Ok("5"));
    assert!(only_record(&store).await.steps.is_empty(), "a settled record needs no steps");
    assert_eq!(Idempotency::disabled().within(checkout(&order)).await.as_deref(), Ok("5"));
    let outside: Result<u32, Error> = step("a", || done(1)).await;
    assert_eq!(outside.unwrap_err().code(), "no-attempt");
}

#[tokio::test]
async fn a_downstream_key_is_the_same_for_every_attempt_and_no_other_purpose_or_key() {
    let (idempotency, _) = on_memory();
    let keys = Mutex::new(Vec::new());
    for (key, ends) in [("o-1", false), ("o-1", true), ("o-2", true)] {
        let operation = idempotency.operation("order").on_crash(OnCrash::Retry);
        let result = operation.key(key).run(|attempt| {
            keys.lock().unwrap().push([attempt.downstream_key("gateway"), attempt.downstream_key("mail")]);
            async move { if ends { Ok(()) } else { Err(Error::NoAttempt) } }
        });
        let _ = result.await;
    }
    let keys = keys.into_inner().unwrap();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0][0], keys[0][1]);
    assert_ne!(keys[0][0], keys[2][0]);
    let uuid = uuid::Uuid::parse_str(&keys[0][0]).unwrap();
    assert_eq!((uuid.get_version_num(), uuid.get_variant()), (8, uuid::Variant::RFC4122));
}
