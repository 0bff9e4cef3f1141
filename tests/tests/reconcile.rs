//! Asking the application before a second run.

use std::time::Duration;

use idempotent_runtime::{Idempotency, Outcome, Reconciled, idempotent, with_outcome};
use tests::{ChargeError, Runs, on_memory, on_memory_with, only_record, poll_times};

/// A call that dies in its body.
async fn crash(idempotency: &Idempotency) {
    let call = idempotency.operation("charge").key("o-1");
    let hung = call.run(|_| std::future::pending::<Result<u32, ChargeError>>());
    assert!(tokio::time::timeout(Duration::from_millis(1), hung).await.is_err());
    idempotency.shutdown().await;
}

type Found = Result<Reconciled<u32>, ChargeError>;

async fn call(
    idempotency: &Idempotency,
    asked: &Runs,
    found: Found,
) -> (Result<u32, ChargeError>, Option<Outcome>) {
    let call = idempotency.operation("charge").key("o-1");
    let find = || async {
        asked.count();
        found
    };
    let answer = with_outcome(call.reconcile_or_run(find, |_| async { Ok(2) })).await;
    idempotency.shutdown().await;
    answer
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_the_result_or_lets_the_body_run_or_refuses() {
    let unknown = Err(ChargeError::code("outcome-unknown"));
    for (found, expected, outcome, then) in [
        (Ok(Reconciled::Done(1)), Ok(1), Some(Outcome::Replayed), Ok(1)),
        (Ok(Reconciled::NotDone), Ok(2), Some(Outcome::Executed), Ok(2)),
        (Ok(Reconciled::Unknown), unknown, None, Ok(7)),
        (Err(ChargeError::GatewayDown), Err(ChargeError::GatewayDown), None, Ok(7)),
    ] {
        let (idempotency, _) = on_memory();
        let asked = Runs::default();
        crash(&idempotency).await;
        assert_eq!(call(&idempotency, &asked, found.clone()).await, (expected, outcome), "{found:?}");
        assert_eq!(asked.total(), 1);
        assert_eq!(call(&idempotency, &asked, Ok(Reconciled::Done(7))).await.0, then, "{found:?}, then");
    }
}

#[tokio::test]
async fn nobody_is_asked_before_a_first_run_or_a_replay() {
    let (idempotency, _) = on_memory();
    let asked = Runs::default();
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        assert_eq!(call(&idempotency, &asked, Ok(Reconciled::Unknown)).await, (Ok(2), Some(outcome)));
    }
    assert_eq!(asked.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_only_asked_is_not_counted() {
    let (idempotency, store) = on_memory_with(|builder| builder.max_attempts(2));
    crash(&idempotency).await;
    let asked = Runs::default();
    for _ in 0..5 {
        let answer = call(&idempotency, &asked, Err(ChargeError::GatewayDown)).await;
        assert_eq!(answer.0, Err(ChargeError::GatewayDown));
    }
    for _ in 0..3 {
        let again = idempotency.operation("charge").key("o-1");
        let find = std::future::pending::<Found>;
        let mut dropped = Box::pin(again.reconcile_or_run(find, |_| async { Ok::<u32, ChargeError>(2) }));
        assert!(poll_times(dropped.as_mut(), 3).is_pending());
        drop(dropped);
        idempotency.shutdown().await;
    }
    assert_eq!(only_record(&store).await.attempt, 1);
    assert_eq!(call(&idempotency, &asked, Ok(Reconciled::NotDone)).await.0, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn asking_happens_under_the_lease_of_the_new_attempt() {
    let (idempotency, _) = on_memory();
    crash(&idempotency).await;
    let slow = idempotency.operation("charge").key("o-1");
    let find = || async {
        tokio::time::sleep(Duration::from_secs(300)).await;
        Ok::<_, ChargeError>(Reconciled::Done(1))
    };
    let first = tokio::spawn(slow.reconcile_or_run(find, |_| async { Ok(2) }));
    tokio::time::sleep(Duration::from_secs(200)).await;
    let asked = Runs::default();
    let second = call(&idempotency, &asked, Ok(Reconciled::Done(9)));
    assert_eq!(second.await.0, Err(ChargeError::code("in-progress")));
    assert_eq!(first.await.unwrap(), Ok(1));
}

/// As `reconcile_or_run`, but said in the attribute.
#[idempotent(key = "id", skip(asked, found), reconcile = ask(asked, &found), name = "charge")]
async fn annotated(id: &str, asked: &Runs, found: Found) -> Result<u32, ChargeError> {
    // The arguments are still there, also after they were asked about.
    drop(found);
    Ok(2)
}

fn ask(asked: &Runs, found: &Found) -> impl Future<Output = Found> + use<> {
    asked.count();
    std::future::ready(found.clone())
}

#[tokio::test(start_paused = true)]
async fn the_attribute_asks_before_a_second_run_and_only_then() {
    let (idempotency, _) = on_memory();
    let asked = Runs::default();
    let call = |found| with_outcome(annotated("fresh", &asked, found));
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        let answer = idempotency.within(call(Ok(Reconciled::Unknown))).await;
        assert_eq!(answer, (Ok(2), Some(outcome)));
    }
    assert_eq!(asked.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_attribute_found_is_the_result_or_lets_the_body_run_or_refuses() {
    let unknown = Err(ChargeError::code("outcome-unknown"));
    for (found, expected, outcome) in [
        (Ok(Reconciled::Done(1)), Ok(1), Some(Outcome::Replayed)),
        (Ok(Reconciled::NotDone), Ok(2), Some(Outcome::Executed)),
        (Ok(Reconciled::Unknown), unknown, None),
        (Err(ChargeError::GatewayDown), Err(ChargeError::GatewayDown), None),
    ] {
        let (idempotency, _) = on_memory();
        let asked = Runs::default();
        crash_of_annotated(&idempotency).await;
        let call = with_outcome(annotated("o-1", &asked, found.clone()));
        assert_eq!(idempotency.within(call).await, (expected, outcome), "{found:?}");
        assert_eq!(asked.total(), 1);
    }
}

/// A call of `annotated` that dies in its body.
async fn crash_of_annotated(idempotency: &Idempotency) {
    let call = idempotency.operation("charge").key("o-1").argument("id", "o-1");
    let hung = call.run(|_| std::future::pending::<Result<u32, ChargeError>>());
    assert!(tokio::time::timeout(Duration::from_millis(1), hung).await.is_err());
    idempotency.shutdown().await;
}
