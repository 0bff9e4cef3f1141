//! Calls that are dropped, and bodies and stores that panic, at every place where something is waited for: in bodies with one
//! effect, in steps, and while the application is asked what happened. What is left is judged by what the effects were.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use idempotent_runtime::store::{State, Step, StepState};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{
    Attempt, Error, Idempotency, OnCrash, Outcome, Reconciled, Unrecorded, with_outcome,
};
use tests::records;
use tokio::task::yield_now;

const POLICIES: [OnCrash; 3] = [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects];

/// How a call is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// Its future is dropped after so many polls.
    Drop(usize),
    /// Its body panics instead of being polled once more than so many times.
    Panic(usize),
}

use Interruption::{Drop, Panic};

/// What happened in the world.
#[derive(Clone, Debug, Default)]
struct Effects(Arc<Mutex<Vec<&'static str>>>);

impl Effects {
    async fn act(&self, name: &'static str) -> usize {
        yield_now().await;
        let nth = {
            let mut effects = self.0.lock().unwrap();
            effects.push(name);
            effects.len()
        };
        yield_now().await;
        nth
    }

    fn of(&self, name: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|effect| **effect == name).count()
    }
}

/// A store whose every call takes a few polls, before it is done and after.
fn slow() -> Faults<MemoryStore> {
    let yields = |_| async {
        yield_now().await;
        yield_now().await;
    };
    let operations = [
        Operation::Reserve,
        Operation::BeginEffects,
        Operation::PutStep,
        Operation::Complete,
        Operation::Release,
    ];
    operations.into_iter().fold(Faults::new(MemoryStore::new()), |store, operation| {
        store.before(operation, yields).after(operation, yields)
    })
}

/// `body`, until it panics instead of being polled once more than `polls` times.
async fn panics_after<T>(polls: usize, body: impl Future<Output = T>) -> T {
    let (mut body, mut left) = (pin!(body), polls);
    poll_fn(|cx| {
        left = left.checked_sub(1).unwrap_or_else(|| std::panic::panic_any("as planned"));
        body.as_mut().poll(cx)
    })
    .await
}

/// Runs a call until it is interrupted. Whether it came to its end before.
async fn interrupt<T, C: Future<Output = Result<T, Error>> + Send + 'static>(
    interruption: Interruption,
    call: impl FnOnce(usize) -> C,
) -> bool
where
    T: Send + 'static,
{
    match interruption {
        Drop(polls) => {
            let mut call: Pin<Box<C>> = Box::pin(call(usize::MAX));
            let mut left = polls;
            poll_fn(|cx| {
                if left == 0 {
                    return Poll::Ready(false);
                }
                left -= 1;
                call.as_mut().poll(cx).map(|_| true)
            })
            .await
        }
        // A panic of the body is the caller's, as it is.
        Panic(polls) => match tokio::spawn(call(polls)).await {
            Ok(answer) => answer.is_ok(),
            Err(panicked) => {
                assert_eq!(panicked.into_panic().downcast_ref::<&str>(), Some(&"as planned"));
                false
            }
        },
    }
}

/// Tries every place, until the call comes to its end: first by dropping, then by panicking.
async fn everywhere<F: Future<Output = bool>>(test: impl Fn(Interruption) -> F) {
    let mut panics = 0;
    for interruption in [Drop as fn(usize) -> Interruption, Panic] {
        for polls in 0.. {
            assert!(polls < 200, "a call ends");
            if test(interruption(polls)).await {
                break;
            }
            panics = polls;
        }
    }
    assert!(panics > 1, "a body waits several times");
}

/// No lease outlives a call that is gone.
async fn assert_nobody_is_at_work(store: &MemoryStore, case: &str) {
    for record in records(store).await {
        let is_over = record.state.is_abandoned() || matches!(record.state, State::Settled(_));
        assert!(is_over, "{case}: {record:?}");
    }
}

async fn marked(effects: Effects, attempt: Attempt) -> Result<usize, Error> {
    yield_now().await;
    attempt.begin_effects().await?;
    Ok(effects.act("effect").await)
}

#[tokio::test(start_paused = true)]
async fn a_body_with_one_effect_interrupted_anywhere_acts_as_often_as_its_policy_says() {
    for policy in POLICIES {
        let answers = Mutex::new(Vec::new());
        everywhere(async |interruption| {
            let case = format!("{policy:?}, {interruption:?}");
            let (store, effects) = (slow(), Effects::default());
            let idempotency = Idempotency::new(store.clone());
            let operation = idempotency.operation("charge").on_crash(policy);
            let ended = interrupt(interruption, |polls| {
                let effects = effects.clone();
                operation.key("o-1").run(move |attempt| panics_after(polls, marked(effects, attempt)))
            })
            .await;
            idempotency.shutdown().await;
            assert_nobody_is_at_work(store.inner(), &case).await;

            let before = effects.of("effect");
            let again = operation.key("o-1").run(|attempt| marked(effects.clone(), attempt)).await;
            match (policy, &again) {
                (OnCrash::Retry, answer) => assert!(answer.is_ok(), "{case}: {answer:?}"),
                (_, Ok(_)) => assert_eq!(effects.of("effect"), 1, "{case}"),
                (_, Err(error)) => {
                    assert_eq!((error.code(), effects.of("effect")), ("outcome-unknown", before), "{case}");
                }
            }
            answers.lock().unwrap().push((before, again.is_ok()));
            ended
        })
        .await;
        // Interrupted before the effect, and after it.
        let answers = answers.into_inner().unwrap();
        assert!(answers.contains(&(0, true)), "{policy:?}: {answers:?}");
        assert_eq!(answers.contains(&(0, false)), policy != OnCrash::Retry, "{policy:?}: {answers:?}");
        assert!(answers.contains(&(1, policy == OnCrash::Retry)), "{policy:?}: {answers:?}");
    }
}

async fn two_steps(effects: Effects, attempt: Attempt) -> Result<usize, Error> {
    let one = attempt.step("one", || async { Ok::<_, Error>(effects.act("one").await) }).await?;
    yield_now().await;
    let two = attempt.step("two", || async { Ok::<_, Error>(effects.act("two").await) }).await?;
    Ok(10 * one + two)
}

/// Interrupts two steps at every place, on a store that fails as planned. How often each step had been done, and whether the
/// next call came to a result.
async fn interrupt_steps(policy: OnCrash, fails: Option<(usize, Fault)>) -> Vec<(usize, usize, bool)> {
    let seen = Mutex::new(Vec::new());
    everywhere(async |interruption| {
        let case = format!("{policy:?}, {fails:?}, {interruption:?}");
        let (store, effects) = (slow(), Effects::default());
        if let Some((nth, fault)) = fails {
            store.plan_nth(Operation::PutStep, nth, fault);
        }
        let idempotency = Idempotency::new(store.clone());
        let operation = idempotency.operation("order").on_crash(policy);
        let ended = interrupt(interruption, |polls| {
            let effects = effects.clone();
            operation.key("o-1").run(move |attempt| panics_after(polls, two_steps(effects, attempt)))
        })
        .await;
        idempotency.shutdown().await;
        assert_nobody_is_at_work(store.inner(), &case).await;

        let (one, two) = (effects.of("one"), effects.of("two"));
        let kept: Vec<_> = records(store.inner()).await.into_iter().flat_map(|record| record.steps).collect();
        let done = |step: &Step| &*step.name == "one" && matches!(step.state, StepState::Done(_));
        let again = operation.key("o-1").run(|attempt| two_steps(effects.clone(), attempt)).await;
        if kept.iter().any(done) {
            assert_eq!(effects.of("one"), 1, "{case}: a finished step ran again");
        }
        match (policy, &again) {
            (OnCrash::Retry, answer) => assert!(answer.is_ok(), "{case}: {answer:?}"),
            (_, Ok(_)) => assert_eq!((effects.of("one"), effects.of("two")), (1, 1), "{case}"),
            (_, Err(error)) => {
                assert_eq!(error.code(), "outcome-unknown", "{case}");
                assert_eq!((effects.of("one"), effects.of("two")), (one, two), "{case}");
            }
        }
        seen.lock().unwrap().push((one, two, again.is_ok()));
        ended
    })
    .await;
    seen.into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn steps_interrupted_anywhere_are_done_as_often_as_their_policy_says() {
    let faults = [Fault::LoseRequest, Fault::LoseReply, Fault::DelayReply(Duration::from_millis(5))];
    let plans = (1..=4).flat_map(|nth| faults.map(|fault| Some((nth, fault))));
    for fails in [None].into_iter().chain(plans) {
        for policy in POLICIES {
            let seen = interrupt_steps(policy, fails).await;
            // Between the steps every policy goes on; inside one, only "retry".
            assert!(seen.contains(&(1, 0, true)), "{policy:?}: {seen:?}");
            assert_eq!(seen.contains(&(1, 0, false)), policy != OnCrash::Retry, "{policy:?}: {seen:?}");
            assert_eq!(seen.contains(&(1, 1, false)), policy != OnCrash::Retry, "{policy:?}: {seen:?}");
        }
    }
}

/// Finds what the attempts before have done, in a while.
async fn find(effects: Effects) -> Result<Reconciled<usize>, Error> {
    yield_now().await;
    let done = effects.of("effect");
    yield_now().await;
    Ok(if done == 0 { Reconciled::NotDone } else { Reconciled::Done(done) })
}

async fn act(effects: Effects) -> Result<usize, Error> {
    Ok(effects.act("effect").await)
}

#[tokio::test(start_paused = true)]
async fn asking_interrupted_anywhere_is_asked_again_and_no_effect_happens_twice() {
    for acted in [false, true] {
        for (while_asking, in_body) in [(true, false), (false, true)] {
            let attempts = Mutex::new(Vec::new());
            everywhere(async |interruption| {
                let case = format!("acted: {acted}, {interruption:?}, asking: {while_asking}");
                let (store, effects) = (slow(), Effects::default());
                let idempotency =
                    Idempotency::builder().store(store.clone()).max_attempts(3).build().unwrap();
                let call = || idempotency.operation("charge").key("o-1");
                // The first attempt dies.
                let first = effects.clone();
                let dies = call().run(move |_| async move {
                    if acted {
                        first.act("effect").await;
                    }
                    std::future::pending::<Result<usize, Error>>().await
                });
                assert!(tokio::time::timeout(Duration::from_millis(1), dies).await.is_err());
                idempotency.shutdown().await;

                // The second is interrupted.
                let ended = interrupt(interruption, |polls| {
                    let (asked, body) = (effects.clone(), effects.clone());
                    let asking = if while_asking { polls } else { usize::MAX };
                    let running = if in_body { polls } else { usize::MAX };
                    call().reconcile_or_run(
                        move || panics_after(asking, find(asked)),
                        move |_| panics_after(running, act(body)),
                    )
                })
                .await;
                idempotency.shutdown().await;
                assert_nobody_is_at_work(store.inner(), &case).await;
                let attempt = records(store.inner()).await[0].attempt;
                attempts.lock().unwrap().push(attempt);

                let (asked, body) = (effects.clone(), effects.clone());
                let third = call().reconcile_or_run(move || find(asked), move |_| act(body)).await;
                assert_eq!((third.unwrap(), effects.of("effect")), (1, 1), "{case}");
                ended
            })
            .await;
            // An attempt that only asked does not count.
            assert!(attempts.into_inner().unwrap().contains(&1));
        }
    }
}

/// A store that panics at some calls of `operation`, before it does what it is asked, or after.
fn panicking(operation: Operation, after: bool, is_meant: fn(u32) -> bool) -> Faults<MemoryStore> {
    let calls = tests::Runs::default();
    let panics = move |_| {
        let calls = calls.clone();
        async move {
            if is_meant(calls.count()) {
                std::panic::panic_any("as planned");
            }
        }
    };
    let store = Faults::new(MemoryStore::new());
    if after { store.after(operation, panics) } else { store.before(operation, panics) }
}

async fn step_and_effect(effects: Effects, attempt: Attempt) -> Result<usize, Error> {
    attempt.step("one", || async { Ok::<_, Error>(effects.act("step").await) }).await?;
    attempt.begin_effects().await?;
    Ok(effects.act("effect").await)
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_once_is_asked_again() {
    for policy in POLICIES {
        for operation in
            [Operation::Reserve, Operation::BeginEffects, Operation::PutStep, Operation::Complete]
        {
            for after in [false, true] {
                let case = format!("{policy:?}, {operation:?}, after: {after}");
                let (store, effects) = (panicking(operation, after, |call| call == 1), Effects::default());
                let idempotency = Idempotency::new(store.clone());
                let charge = idempotency.operation("charge").on_crash(policy);
                for outcome in [Outcome::Executed, Outcome::Replayed] {
                    let call = charge.key("o-1").run(|attempt| step_and_effect(effects.clone(), attempt));
                    let (answer, reached) = with_outcome(call).await;
                    assert_eq!((answer.unwrap(), reached), (2, Some(outcome)), "{case}");
                }
                assert_eq!((effects.of("step"), effects.of("effect")), (1, 1), "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_always_is_away() {
    for after in [false, true] {
        let store = panicking(Operation::Reserve, after, |_| true);
        let (idempotency, effects) = (Idempotency::new(store.clone()), Effects::default());
        let call = || idempotency.operation("charge").key("o-1").run(|_| act(effects.clone()));
        assert_eq!(call().await.unwrap_err().code(), "store-unavailable");
        idempotency.shutdown().await;
        assert_eq!((effects.of("effect"), records(store.inner()).await.len()), (0, 0), "it was given back");
        store.heal();
        assert_eq!(call().await.unwrap(), 1);

        let store = panicking(Operation::Complete, after, |_| true);
        let (idempotency, effects) = (Idempotency::new(store.clone()), Effects::default());
        let call = || with_outcome(idempotency.operation("charge").key("o-1").run(|_| act(effects.clone())));
        let (value, outcome) = call().await;
        assert_eq!((value.unwrap(), outcome), (1, Some(Outcome::Unrecorded(Unrecorded::StoreFailed))));
        store.heal();
        idempotency.shutdown().await;
        assert_eq!(call().await.0.unwrap(), 1, "recorded in the background");
        assert_eq!(effects.of("effect"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_at_a_watch_or_a_look_only_delays_who_waits() {
    for (operation, is_meant) in
        [(Operation::Watch, (|_| true) as fn(u32) -> bool), (Operation::Load, |call| call == 1)]
    {
        let store = panicking(operation, false, is_meant);
        let idempotency = Idempotency::builder().store(store).wait(Duration::from_secs(60)).build().unwrap();
        let call = || {
            idempotency.operation("charge").key("o-1").run(|attempt| async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok::<_, Error>(attempt.number())
            })
        };
        let (first, second) = tokio::join!(call(), call());
        assert_eq!((first.unwrap(), second.unwrap()), (1, 1), "{operation:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_at_a_renewal_is_asked_again() {
    for after in [false, true] {
        let idempotency = Idempotency::new(panicking(Operation::Renew, after, |call| call == 1));
        let call = idempotency.operation("charge").key("o-1").run(|attempt| async move {
            tokio::time::sleep(Duration::from_secs(300)).await;
            Ok::<_, Error>(attempt.is_lost())
        });
        let first = tokio::spawn(call);
        tokio::time::sleep(Duration::from_secs(200)).await;
        let second = idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(true) });
        assert_eq!(second.await.unwrap_err().code(), "in-progress");
        assert!(!first.await.unwrap().unwrap());
    }
}
