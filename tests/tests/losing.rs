//! Bodies whose lease is lost while they run, and leases that must not be lost for another's sake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idempotent_runtime::store::{Record, Release, Store};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, OnLost, Outcome, with_outcome};
use tests::{ChargeError, Runs, only_record};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(30);

fn handle(store: impl Store, on_lost: OnLost) -> Idempotency {
    Idempotency::builder().store(store).lease(LEASE).on_lost(on_lost).build().unwrap()
}

fn charge(idempotency: &Idempotency) -> idempotent_runtime::OperationCall {
    idempotency.operation("charge").on_crash(OnCrash::Retry).key("o-1")
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A body that would act after many leases, and the proof that it was dropped.
async fn acts_late(idempotency: &Idempotency, runs: Runs, dropped: Arc<AtomicBool>) -> Result<u32, Error> {
    let call = charge(idempotency);
    call.run(|_| async move {
        let _dropped = Dropped(dropped);
        sleep(20 * LEASE).await;
        Ok(runs.count())
    })
    .await
}

/// Takes the key away behind the back of the call that has it.
async fn take_away(store: &impl Store) -> Record {
    let record = only_record(store).await;
    store.release(&record.key, record.owner, Release::Forget).await.unwrap();
    record
}

#[tokio::test(start_paused = true)]
async fn a_body_is_dropped_when_another_has_its_key_and_the_others_record_stays() {
    let store = MemoryStore::new();
    let idempotency = handle(store.clone(), OnLost::Cancel);
    let (runs, dropped) = (Runs::default(), Arc::new(AtomicBool::new(false)));
    let first = {
        let (idempotency, runs, dropped) = (idempotency.clone(), runs.clone(), Arc::clone(&dropped));
        tokio::spawn(async move { with_outcome(acts_late(&idempotency, runs, dropped)).await })
    };
    sleep(Duration::from_millis(1)).await;
    take_away(&store).await;
    let second = charge(&idempotency).run(|_| async { Ok::<_, Error>(2) });
    assert_eq!(second.await.unwrap(), 2);
    let before = only_record(&store).await;
    let (result, outcome) = first.await.unwrap();
    assert_eq!((result.unwrap_err().code(), outcome), ("lease-lost", None));
    assert!(dropped.load(Ordering::SeqCst), "before the caller was told");
    idempotency.shutdown().await;
    sleep(30 * LEASE).await;
    let after = only_record(&store).await;
    assert_eq!((before.owner, before.state), (after.owner, after.state));
    assert_eq!(runs.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_is_dropped_when_the_store_is_silent_for_a_lease_and_nothing_is_written() {
    let store = Faults::new(MemoryStore::new()).always(Operation::Renew, Fault::LoseRequest);
    let idempotency = handle(store.clone(), OnLost::Cancel);
    let (runs, dropped) = (Runs::default(), Arc::new(AtomicBool::new(false)));
    let error = acts_late(&idempotency, runs.clone(), Arc::clone(&dropped)).await.unwrap_err();
    assert_eq!((error.code(), runs.total(), dropped.load(Ordering::SeqCst)), ("lease-lost", 0, true));
    idempotency.shutdown().await;
    assert_eq!((store.count(Operation::Release), store.count(Operation::Complete)), (0, 0));
    assert!(only_record(&store).await.state.is_abandoned(), "the policies decide, as after a crash");
    let next = charge(&idempotency).run(|attempt: Attempt| async move { Ok::<_, Error>(attempt.number()) });
    assert_eq!(next.await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_hangs_is_dropped_after_max_run() {
    let store = MemoryStore::new();
    let builder = Idempotency::builder().store(store.clone()).lease(LEASE).max_run(3 * LEASE);
    let idempotency = builder.build().unwrap();
    let call = idempotency.operation("charge").on_lost(OnLost::Cancel).key("o-1");
    let started = tokio::time::Instant::now();
    let hung = call.run(|_| std::future::pending::<Result<u32, Error>>());
    assert_eq!(hung.await.unwrap_err().code(), "lease-lost");
    assert!((3 * LEASE..5 * LEASE).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert_eq!(charge(&idempotency).run(|_| async { Ok::<_, Error>(2) }).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_body_goes_on_where_nobody_asked_for_its_end() {
    let store = MemoryStore::new();
    let idempotency = handle(store.clone(), OnLost::Cancel);
    let call = idempotency.operation("charge").on_lost(OnLost::GoOn).key("o-1");
    let first = tokio::spawn(with_outcome(call.run(|attempt: Attempt| async move {
        attempt.lost().await;
        sleep(LEASE).await;
        Ok::<_, Error>(1)
    })));
    sleep(Duration::from_millis(1)).await;
    take_away(&store).await;
    let (result, outcome) = first.await.unwrap();
    assert_eq!(result.unwrap(), 1);
    assert!(matches!(outcome, Some(Outcome::Unrecorded(_))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_as_its_lease_is_lost_gives_its_own_value() {
    let store = MemoryStore::new();
    let idempotency = handle(store.clone(), OnLost::Cancel);
    let (seen, call) = (store.clone(), charge(&idempotency));
    let ends = call.run(|attempt: Attempt| async move {
        take_away(&seen).await;
        // It learns of the loss by this, and has its own way to deal with it.
        attempt.begin_effects().await.unwrap_err();
        Ok::<_, Error>(1)
    });
    assert_eq!(ends.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_dropped_while_the_lease_holds() {
    let idempotency = handle(MemoryStore::new(), OnLost::Cancel);
    let (runs, dropped) = (Runs::default(), Arc::new(AtomicBool::new(false)));
    assert_eq!(acts_late(&idempotency, runs, dropped).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_inner_call_that_is_cancelled_is_not_the_result_of_the_outer_one() {
    let (outer_store, inner_store) = (MemoryStore::new(), MemoryStore::new());
    let outer = handle(outer_store.clone(), OnLost::GoOn);
    let inner = handle(inner_store.clone(), OnLost::Cancel);
    let call = outer.operation("outer").replay_errors().key("o-1");
    let run = tokio::spawn(call.run(|_| async move {
        let call = charge(&inner);
        call.run(|_| std::future::pending::<Result<u32, ChargeError>>()).await
    }));
    sleep(Duration::from_millis(1)).await;
    take_away(&inner_store).await;
    assert_eq!(run.await.unwrap(), Err(ChargeError::code("lease-lost")));
    assert!(tests::records(&outer_store).await.is_empty(), "released, and not stored");
}

/// One store, of which one record's renewals hang: the renewals of the others go on.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_keeps_no_other_from_renewing() {
    let memory = MemoryStore::new();
    let late = Faults::new(memory.clone()).before(Operation::Renew, |_| std::future::pending());
    let (late, prompt) = (handle(late, OnLost::Cancel), handle(memory, OnLost::Cancel));
    let long = |idempotency: &Idempotency, key: &'static str| {
        let call = idempotency.operation("charge").key(key);
        call.run(|_| async {
            sleep(10 * LEASE).await;
            Ok::<_, Error>(1)
        })
    };
    let (lost, kept, kept_too) = tokio::join!(long(&late, "a"), long(&prompt, "b"), long(&prompt, "c"));
    assert_eq!(lost.unwrap_err().code(), "lease-lost");
    assert_eq!((kept.unwrap(), kept_too.unwrap()), (1, 1));
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn on_sqlite_a_body_is_dropped_when_another_has_its_key() {
    let folder = std::env::temp_dir().join(format!("losing-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let store = idempotent_runtime::stores::SqliteStore::open(folder.join("records.db")).await.unwrap();
    let store = Arc::new(store);
    let builder = Idempotency::builder().store(Arc::clone(&store)).lease(Duration::from_millis(200));
    let idempotency = builder.on_lost(OnLost::Cancel).build().unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let proof = Dropped(Arc::clone(&dropped));
    let call = charge(&idempotency);
    let first = tokio::spawn(call.run(|_| async move {
        let _proof = proof;
        std::future::pending::<Result<u32, Error>>().await
    }));
    while tests::records(&store).await.is_empty() {
        tokio::task::yield_now().await;
    }
    take_away(&store).await;
    let second = charge(&idempotency).run(|_| async { Ok::<_, Error>(2) });
    assert_eq!(second.await.unwrap(), 2);
    assert_eq!(first.await.unwrap().unwrap_err().code(), "lease-lost");
    assert!(dropped.load(Ordering::SeqCst));
    let record = only_record(&store).await;
    assert_eq!(record.state.name().as_str(), "completed");
    std::fs::remove_dir_all(folder).unwrap();
}
