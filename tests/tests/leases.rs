//! Attempts that live long, die, or come back from the dead.

use std::time::Duration;

use idempotent_runtime::store::{Settled, State, Store};
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, Outcome, Unrecorded, with_outcome};
use tests::{on_memory, on_memory_with, only_record};
use tokio::sync::oneshot;
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(30);

fn charge(idempotency: &Idempotency) -> idempotent_runtime::OperationCall {
    idempotency.operation("charge").on_crash(OnCrash::Retry).key("o-1")
}

#[tokio::test(start_paused = true)]
async fn a_body_of_many_leases_keeps_its_key() {
    let (idempotency, _) = on_memory();
    let call = charge(&idempotency);
    let first = tokio::spawn(call.run(|_| async {
        sleep(10 * LEASE).await;
        Ok::<_, Error>(1)
    }));
    for _ in 0..19 {
        sleep(LEASE / 2).await;
        let duplicate = charge(&idempotency).run(|_| async { Ok::<_, Error>(2) }).await;
        assert_eq!(duplicate.unwrap_err().code(), "in-progress");
    }
    assert_eq!(first.await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn renewal_ends_with_the_body() {
    let (idempotency, store) = on_memory();
    let call = charge(&idempotency);
    let result = call.run(|_| async {
        sleep(LEASE).await;
        Ok::<_, Error>(1)
    });
    result.await.unwrap();
    let before = only_record(&store).await.expires_in;
    sleep(3 * LEASE).await;
    let after = only_record(&store).await.expires_in;
    assert_eq!(before - after, 3 * LEASE, "nothing touched the record");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_hangs_loses_its_key_after_max_run() {
    let (idempotency, store) = on_memory_with(|builder| builder.max_run(4 * LEASE));
    let call = charge(&idempotency);
    let _hung = tokio::spawn(call.run(|_| std::future::pending::<Result<u32, Error>>()));
    sleep(4 * LEASE).await;
    assert!(!only_record(&store).await.state.is_abandoned());
    sleep(2 * LEASE).await;
    assert!(only_record(&store).await.state.is_abandoned());
    assert_eq!(charge(&idempotency).run(|_| async { Ok::<_, Error>(2) }).await.unwrap(), 2);
}

/// Nothing ends such a lease but the attempt itself; when that is dropped, what is remembered of it is as long as ever.
#[tokio::test(start_paused = true)]
async fn a_lease_without_end_is_over_when_its_body_is_dropped_and_its_outcome_is_remembered() {
    let (idempotency, store) = on_memory_with(|builder| builder.lease(Duration::MAX).unknown_ttl(10 * LEASE));
    let charge = || idempotency.operation("charge").key("o-1");
    let dropped = charge().run(|_| std::future::pending::<Result<u32, Error>>());
    assert!(tokio::time::timeout(LEASE, dropped).await.is_err());
    idempotency.shutdown().await;
    assert!(only_record(&store).await.state.is_abandoned());
    sleep(9 * LEASE).await;
    let next = charge().run(|_| async { Ok::<_, Error>(2) }).await;
    assert_eq!(next.unwrap_err().code(), "outcome-unknown");
    sleep(2 * LEASE).await;
    assert_eq!(charge().run(|_| async { Ok::<_, Error>(2) }).await.unwrap(), 2);
}

/// Starts a call whose lease nobody renews, as if its process stood still, and gives what ends its body.
fn zombie(idempotency: &Idempotency) -> (Attempted, oneshot::Sender<u32>) {
    let call = charge(idempotency);
    let (finish, finished) = oneshot::channel();
    let call = with_outcome(call.run(|attempt: Attempt| async move {
        let value = finished.await.unwrap_or_default();
        Ok::<_, Error>((value, attempt.number()))
    }));
    (Box::pin(call), finish)
}

type Attempted = std::pin::Pin<Box<dyn Future<Output = (Result<(u32, u32), Error>, Option<Outcome>)> + Send>>;

/// Polls a call once, outside of any runtime: its body has begun, and no heartbeat runs.
fn start(call: &mut Attempted) {
    assert!(std::thread::scope(|scope| {
        scope.spawn(|| tests::poll_times(call.as_mut(), 1).is_pending()).join().unwrap()
    }));
}

#[tokio::test]
async fn a_zombies_value_is_its_callers_and_not_the_stored_one() {
    let clock = idempotent_runtime::testing::ManualClock::default();
    let store = idempotent_runtime::stores::MemoryStore::builder().clock(clock.clone()).build();
    let idempotency = Idempotency::new(store.clone());
    let (mut first, finish) = zombie(&idempotency);
    start(&mut first);
    clock.advance(LEASE + Duration::from_millis(1));

    let second = charge(&idempotency).run(|attempt| async move { Ok::<_, Error>((2, attempt.number())) });
    assert_eq!(second.await.unwrap(), (2, 2));
    finish.send(1).unwrap();
    let (value, outcome) = first.await;
    assert_eq!(value.unwrap(), (1, 1), "a body that ended gives its own value to its caller");
    assert_eq!(outcome, Some(Outcome::Unrecorded(Unrecorded::LeaseLost)));
    let replay = charge(&idempotency).run(|_| async { Ok::<_, Error>((3, 3)) });
    assert_eq!(replay.await.unwrap(), (2, 2), "what is stored is the second one's");
}

#[tokio::test]
async fn a_late_owner_that_nobody_replaced_still_completes() {
    let clock = idempotent_runtime::testing::ManualClock::default();
    let store = idempotent_runtime::stores::MemoryStore::builder().clock(clock.clone()).build();
    let idempotency = Idempotency::new(store.clone());
    let (mut first, finish) = zombie(&idempotency);
    start(&mut first);
    clock.advance(10 * LEASE);
    finish.send(1).unwrap();
    assert_eq!(first.await.1, Some(Outcome::Executed));
    assert!(matches!(only_record(&store).await.state, State::Settled(Settled::Completed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_body_is_told_that_its_key_is_lost() {
    let (idempotency, store) = on_memory();
    let call = charge(&idempotency);
    let told = tokio::spawn(call.run(|attempt| async move {
        attempt.lost().await;
        assert!(attempt.is_lost());
        let error = attempt.begin_effects().await.unwrap_err();
        Err::<(), _>(error)
    }));
    sleep(Duration::from_millis(1)).await;
    // Somebody deletes the record behind the library's back.
    let record = only_record(&store).await;
    store.release(&record.key, record.owner, idempotent_runtime::store::Release::Forget).await.unwrap();
    assert_eq!(told.await.unwrap().unwrap_err().code(), "lease-lost");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_to_the_millisecond() {
    let (idempotency, store) = on_memory_with(|builder| builder.lease(Duration::from_millis(1_500)));
    let call = charge(&idempotency);
    let mut call = Box::pin(call.run(|_| std::future::pending::<Result<u32, Error>>()));
    assert!(tests::poll_times(call.as_mut(), 1).is_pending());
    std::mem::forget(call); // as if its process had died: nothing runs, not even `Drop`
    let Some(record) = store.load(&only_record(&store).await.key).await.unwrap() else { panic!() };
    let State::Running { lease_left, .. } = record.state else { panic!() };
    assert_eq!(lease_left, Duration::from_millis(1_500));
}

/// Over a store that answers at once, as memory does, a body is renewed from its first wait on; over any other from the
/// beginning, so that a body which blocks its thread keeps its key as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_blocks_its_thread_keeps_its_key() {
    use idempotent_runtime::testing::{Faults, Operation};
    let lease = Duration::from_millis(300);
    let yields = |_| sleep(Duration::from_millis(1));
    let store =
        Faults::new(idempotent_runtime::stores::MemoryStore::new()).before(Operation::Reserve, yields);
    let idempotency = Idempotency::builder().store(store.clone()).lease(lease).build().unwrap();
    let (started, running) = oneshot::channel();
    let (finish, finished) = std::sync::mpsc::channel::<()>();
    let call = charge(&idempotency);
    let blocking = tokio::spawn(call.run(|attempt| async move {
        started.send(()).unwrap();
        finished.recv().unwrap();
        Ok::<_, Error>(attempt.number())
    }));
    running.await.unwrap();
    // Until it has been renewed beyond the end of its first lease.
    for _ in 0..1_000 {
        if store.count(Operation::Renew) >= 4 {
            break;
        }
        sleep(lease / 10).await;
    }
    let duplicate = charge(&idempotency).run(|attempt| async move { Ok::<_, Error>(attempt.number()) });
    assert_eq!(duplicate.await.unwrap_err().code(), "in-progress");
    finish.send(()).unwrap();
    assert_eq!(blocking.await.unwrap().unwrap(), 1);
}
