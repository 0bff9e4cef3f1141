//! Calls on a store that loses requests and replies, is slow, or is away.

use std::time::Duration;

use idempotent_runtime::store::{Settled, State, StoreErrorKind};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, Outcome, Unrecorded, with_outcome};
use tests::{Runs, only_record, poll_times, records};
use tokio::time::Instant;

/// The store's patience in these tests.
const TIMEOUT: Duration = Duration::from_secs(5);

fn on(store: &Faults<MemoryStore>) -> Idempotency {
    Idempotency::builder().store(store.clone()).store_timeout(TIMEOUT).build().unwrap()
}

fn faulty() -> Faults<MemoryStore> {
    Faults::new(MemoryStore::new())
}

async fn charge(idempotency: &Idempotency, runs: &Runs) -> (Result<u32, Error>, Option<Outcome>) {
    let call = idempotency.operation("charge").key("o-1");
    with_outcome(call.run(|_| async { Ok(runs.count()) })).await
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_or_reply_is_asked_again_and_is_no_second_call() {
    for operation in [Operation::Reserve, Operation::Complete] {
        for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::DelayReply(TIMEOUT)] {
            let store = faulty().nth(operation, 1, fault);
            let (idempotency, runs) = (on(&store), Runs::default());
            let (result, outcome) = charge(&idempotency, &runs).await;
            assert_eq!((result.unwrap(), outcome), (1, Some(Outcome::Executed)), "{operation:?} {fault:?}");
            assert_eq!(charge(&idempotency, &runs).await.0.unwrap(), 1);
            assert_eq!(only_record(store.inner()).await.attempt, 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_before_the_body_is_an_error_in_time_and_nothing_runs() {
    for fault in [Fault::LoseRequest, Fault::DelayRequest(Duration::from_secs(3600))] {
        let store = faulty().always(Operation::Reserve, fault);
        let (idempotency, runs) = (on(&store), Runs::default());
        let asked_at = Instant::now();
        let (result, outcome) = charge(&idempotency, &runs).await;
        let error = result.unwrap_err();
        assert_eq!((error.code(), error.is_retryable(), outcome), ("store-unavailable", true, None));
        assert!(std::error::Error::source(&error).is_some(), "the store's own error is its source");
        assert!(asked_at.elapsed() <= TIMEOUT, "{:?}", asked_at.elapsed());
        assert_eq!(runs.total(), 0);
        store.heal();
        assert_eq!(charge(&idempotency, &runs).await.0.unwrap(), 1, "afterwards it works again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reservation_whose_replies_are_all_lost_is_given_back() {
    let store = faulty().always(Operation::Reserve, Fault::LoseReply);
    let (idempotency, runs) = (on(&store), Runs::default());
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap_err().code(), "store-unavailable");
    idempotency.shutdown().await;
    assert!(records(store.inner()).await.is_empty());
    store.heal();
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap(), 1);
}

#[tokio::test]
async fn a_store_that_refuses_is_asked_once() {
    for kind in [StoreErrorKind::Refused, StoreErrorKind::Full, StoreErrorKind::Unreadable] {
        let store = faulty().always(Operation::Reserve, Fault::Refuse(kind));
        let (idempotency, runs) = (on(&store), Runs::default());
        let error = charge(&idempotency, &runs).await.0.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), ("store-unavailable", false));
        assert_eq!((store.count(Operation::Reserve), runs.total()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_after_the_body_gives_the_value_and_records_later() {
    let store = faulty().always(Operation::Complete, Fault::LoseRequest);
    let (idempotency, runs) = (on(&store), Runs::default());
    let asked_at = Instant::now();
    let (result, outcome) = charge(&idempotency, &runs).await;
    assert_eq!((result.unwrap(), outcome), (1, Some(Outcome::Unrecorded(Unrecorded::StoreFailed))));
    assert!(asked_at.elapsed() <= TIMEOUT + Duration::from_millis(1));
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap_err().code(), "in-progress");

    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        charge(&idempotency, &runs).await.0.unwrap_err().code(),
        "in-progress",
        "the lease is renewed"
    );
    store.heal();
    idempotency.shutdown().await;
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap(), 1);
    assert_eq!(runs.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_was_never_recorded_ends_unknown_and_is_not_made_again() {
    let store = faulty().always(Operation::Complete, Fault::LoseRequest);
    let (idempotency, runs) = (on(&store), Runs::default());
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap(), 1);
    idempotency.shutdown().await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap_err().code(), "outcome-unknown");
    assert_eq!(runs.total(), 1);
}

#[tokio::test]
async fn a_store_that_refuses_a_result_keeps_that_there_was_one() {
    let store = faulty().nth(Operation::Complete, 1, Fault::Refuse(StoreErrorKind::Refused));
    let (idempotency, runs) = (on(&store), Runs::default());
    let (result, outcome) = charge(&idempotency, &runs).await;
    assert_eq!((result.unwrap(), outcome), (1, Some(Outcome::Unrecorded(Unrecorded::TooLarge))));
    assert_eq!(only_record(store.inner()).await.state, State::Settled(Settled::NotRetained));
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap_err().code(), "result-not-retained");
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_does_not_change_the_bodys_error() {
    let store = faulty().always(Operation::Release, Fault::LoseRequest);
    let idempotency = on(&store);
    let call = idempotency.operation("charge").key("o-1");
    let (result, outcome) = with_outcome(call.run(|_| async { Err::<u32, _>(Error::NoAttempt) })).await;
    assert_eq!(result.unwrap_err().code(), "no-attempt");
    assert_eq!(outcome, Some(Outcome::Unrecorded(Unrecorded::StoreFailed)));
    store.heal();
    idempotency.shutdown().await;
    assert!(records(store.inner()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn effects_do_not_begin_on_a_store_that_is_away() {
    let store = faulty().always(Operation::BeginEffects, Fault::LoseRequest);
    let (idempotency, effects) = (on(&store), Runs::default());
    let call = idempotency.operation("charge").key("o-1");
    let result = call.run(|attempt: Attempt| {
        let effects = &effects;
        async move {
            attempt.begin_effects().await?;
            Ok::<_, Error>(effects.count())
        }
    });
    assert_eq!(result.await.unwrap_err().code(), "store-unavailable");
    assert_eq!(effects.total(), 0);
    assert!(records(store.inner()).await.is_empty(), "nothing had begun, so the key is released");
}

#[tokio::test(start_paused = true)]
async fn renewals_that_fail_for_a_whole_lease_tell_the_body() {
    let store = faulty().always(Operation::Renew, Fault::LoseRequest);
    let idempotency = on(&store);
    let call = idempotency.operation("charge").key("o-1");
    let started = Instant::now();
    let result = call.run(|attempt| async move {
        attempt.lost().await;
        Ok::<_, Error>(started.elapsed())
    });
    let told_after = result.await.unwrap();
    assert!(told_after >= Duration::from_secs(30) && told_after < Duration::from_secs(45), "{told_after:?}");
}

#[tokio::test(start_paused = true)]
async fn one_late_store_does_not_stall_the_renewals_of_others() {
    let slow = faulty().always(Operation::Renew, Fault::DelayRequest(Duration::from_secs(3600)));
    let (slow, quick) = (on(&slow), on(&faulty()));
    let run = |idempotency: &Idempotency| {
        let call = idempotency.operation("charge").key("o-1");
        tokio::spawn(call.run(|attempt| async move {
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok::<_, Error>(attempt.is_lost())
        }))
    };
    let (of_slow, of_quick) = (run(&slow), run(&quick));
    assert!(of_slow.await.unwrap().unwrap());
    assert!(!of_quick.await.unwrap().unwrap());
}

/// What a dropped call may leave behind, given how far it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    Abandoned,
    Settled,
}

async fn left_in(store: &MemoryStore) -> Left {
    match records(store).await.pop().map(|record| record.state) {
        None => Left::Nothing,
        Some(state @ State::Running { .. }) => {
            assert!(state.is_abandoned(), "no lease outlives a dropped call: {state:?}");
            Left::Abandoned
        }
        Some(State::Settled(_)) => Left::Settled,
    }
}

/// A store whose every call takes a few polls, so that a call has many places to be dropped at.
fn slow() -> Faults<MemoryStore> {
    let yields = |_| async {
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    };
    [Operation::Reserve, Operation::BeginEffects, Operation::Complete, Operation::Release]
        .into_iter()
        .fold(faulty(), |store, operation| store.before(operation, yields).after(operation, yields))
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_await_leaves_what_it_should() {
    let faults = [
        None,
        Some(Fault::LoseRequest),
        Some(Fault::LoseReply),
        Some(Fault::DelayReply(Duration::from_millis(5))),
    ];
    for policy in [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects] {
        for failing in [Operation::Reserve, Operation::BeginEffects, Operation::Complete, Operation::Release]
        {
            for fault in faults {
                for fails in [false, true] {
                    drop_everywhere(policy, failing, fault, fails).await;
                }
            }
        }
    }
}

/// Drops a call after 1, 2, 3… polls, until it ends before.
async fn drop_everywhere(policy: OnCrash, failing: Operation, fault: Option<Fault>, fails: bool) {
    let mut seen = Vec::new();
    for polls in 0.. {
        let case =
            format!("{policy:?}, {failing:?} {fault:?}, body fails: {fails}, dropped after {polls} polls");
        let store = slow();
        if let Some(fault) = fault {
            store.plan_nth(failing, 1, fault);
        }
        let (idempotency, runs, ends) = (on(&store), Runs::default(), Runs::default());
        let operation = idempotency.operation("charge").on_crash(policy);
        let body = |attempt: Attempt| {
            let (runs, ends) = (&runs, &ends);
            async move {
                let run = runs.count();
                tokio::task::yield_now().await;
                attempt.begin_effects().await?;
                tokio::task::yield_now().await;
                ends.count();
                if fails { Err(Error::NoAttempt) } else { Ok(run) }
            }
        };
        let mut call = Box::pin(operation.key("o-1").run(body));
        let mut ended = false;
        for _ in 0..polls {
            ended = poll_times(call.as_mut(), 1).is_ready();
            if ended {
                break;
            }
            // Time goes on between polls, so that retries and delays come to their end.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(call);
        idempotency.shutdown().await;

        let left = left_in(store.inner()).await;
        match (runs.total(), ends.total()) {
            (0, _) => assert_eq!(left, Left::Nothing, "nothing ran: {case}"),
            (_, 0) => assert_eq!(left, Left::Abandoned, "no answer was given: {case}"),
            (_, _) => assert_eq!(left, Left::Settled, "an answer was given: {case}"),
        }
        seen.push(left);
        if ended {
            break;
        }
        assert!(polls < 200, "a call ends: {case}");
    }
    assert!(
        [Left::Nothing, Left::Abandoned, Left::Settled].iter().all(|left| seen.contains(left)),
        "{seen:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reserve_that_arrives_after_its_caller_went_away_is_given_back() {
    let store = faulty().nth(Operation::Reserve, 1, Fault::DelayRequest(Duration::from_secs(1)));
    let idempotency = on(&store);
    let call = idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(()) });
    assert!(tokio::time::timeout(Duration::from_millis(10), call).await.is_err());
    idempotency.shutdown().await;
    assert_eq!(store.count(Operation::Reserve), 1, "it did arrive");
    assert!(records(store.inner()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_take_over_that_was_not_used_is_not_counted() {
    let store = slow();
    let idempotency = Idempotency::builder().store(store.clone()).max_attempts(2).build().unwrap();
    let operation = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let crash = operation.key("o-1").run(|_| std::future::pending::<Result<u32, Error>>());
    assert!(tokio::time::timeout(Duration::from_secs(1), crash).await.is_err());
    idempotency.shutdown().await;
    for _ in 0..5 {
        let mut call = Box::pin(operation.key("o-1").run(|_| async { Ok::<_, Error>(1) }));
        assert!(poll_times(call.as_mut(), 3).is_pending());
        drop(call);
        idempotency.shutdown().await;
        assert_eq!(only_record(store.inner()).await.attempt, 1);
    }
    let run = operation.key("o-1").run(|attempt| async move { Ok::<_, Error>(attempt.number()) });
    assert_eq!(run.await.unwrap(), 2);
}

#[test]
fn a_drop_without_a_runtime_does_nothing_and_the_lease_ends_by_itself() {
    let clock = idempotent_runtime::testing::ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let idempotency = Idempotency::new(store.clone());
    let call = || idempotency.operation("charge").on_crash(OnCrash::Retry).key("o-1");
    let mut hung = Box::pin(call().run(|_| std::future::pending::<Result<u32, Error>>()));
    assert!(poll_times(hung.as_mut(), 1).is_pending());
    drop(hung);
    let mut duplicate = Box::pin(call().run(|_| async { Ok::<_, Error>(2) }));
    let std::task::Poll::Ready(Err(error)) = poll_times(duplicate.as_mut(), 1) else { panic!("in progress") };
    assert_eq!(error.code(), "in-progress");
    clock.advance(Duration::from_secs(31));
    let mut duplicate = Box::pin(call().run(|_| async { Ok::<_, Error>(2) }));
    assert!(matches!(poll_times(duplicate.as_mut(), 1), std::task::Poll::Ready(Ok(2))));
}

#[tokio::test(start_paused = true)]
async fn a_reservation_whose_reply_is_lost_and_whose_repetition_is_refused_is_given_back() {
    let store = faulty().nth(Operation::Reserve, 1, Fault::LoseReply).nth(
        Operation::Reserve,
        2,
        Fault::Refuse(StoreErrorKind::Full),
    );
    let (idempotency, runs) = (on(&store), Runs::default());
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap_err().code(), "store-unavailable");
    idempotency.shutdown().await;
    assert_eq!(charge(&idempotency, &runs).await.0.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_arrives_after_its_lease_is_asked_for_again() {
    let late = Duration::from_secs(2);
    let store = faulty().nth(Operation::Reserve, 1, Fault::DelayReply(late));
    let idempotency = Idempotency::builder().store(store).lease(late / 2).build().unwrap();
    let runs = Runs::default();
    let call = || {
        let runs = runs.clone();
        let call = idempotency.operation("charge").on_crash(OnCrash::Retry).key("o-1");
        call.run(move |_| async move {
            runs.count();
            tokio::time::sleep(10 * late).await;
            Ok::<_, Error>(1)
        })
    };
    let first = tokio::spawn(call());
    tokio::time::sleep(late * 3 / 4).await;
    assert_eq!(call().await.unwrap(), 1, "it took over from a lease that was over");
    assert_eq!(first.await.unwrap().unwrap_err().code(), "in-progress");
    assert_eq!(runs.total(), 1, "no two bodies at once");
}

#[tokio::test(start_paused = true)]
async fn spans_that_no_clock_can_hold_last_as_long_as_it_takes() {
    let longest = Duration::MAX;
    let store =
        faulty().nth(Operation::Reserve, 1, Fault::LoseReply).nth(Operation::Complete, 1, Fault::LoseReply);
    let builder = Idempotency::builder().store(store).ttl(longest).lease(longest).unknown_ttl(longest);
    let builder = builder.wait(longest).max_run(longest).store_timeout(longest).record_patience(longest);
    let idempotency = builder.build().unwrap();
    let call = || {
        idempotency.operation("charge").key("o-1").run(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, Error>(1)
        })
    };
    let first = tokio::spawn(call());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((call().await.unwrap(), first.await.unwrap().unwrap()), (1, 1));
}
