//! Looking at records, and settling by hand what no call will settle.

use std::time::Duration;

use idempotent_runtime::store::{Compared, ListQuery, StateName};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{Error, Idempotency};
use tests::on_memory;

/// A key whose outcome is unknown, one that is completed, and one whose body was dropped.
async fn prepared() -> Idempotency {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge").refuse_after_errors();
    assert!(charge.key("unknown").run(|_| async { Err::<u32, _>(Error::NoAttempt) }).await.is_err());
    assert!(charge.key("completed").run(|_| async { Ok::<u32, Error>(1) }).await.is_ok());
    let dropped = charge.key("dropped").run(|_| std::future::pending::<Result<u32, Error>>());
    assert!(tokio::time::timeout(Duration::from_millis(1), dropped).await.is_err());
    idempotency.shutdown().await;
    idempotency
}

async fn answer(idempotency: &Idempotency, key: &str) -> Result<u32, Error> {
    idempotency.operation("charge").key(key).run(|_| async { Ok(99) }).await
}

#[tokio::test]
async fn what_is_stuck_is_listed_and_can_be_inspected() {
    let idempotency = prepared().await;
    let stuck = idempotency.list(&ListQuery { stuck: true, ..ListQuery::default() }).await.unwrap();
    let keys: Vec<_> = stuck.records.iter().map(|record| record.key.as_str()).collect();
    assert_eq!(keys, ["default/charge/unknown", "default/charge/dropped"]);
    let key = idempotency.operation("charge").key("completed").record_key().unwrap();
    let record = idempotency.inspect(key.as_str()).await.unwrap().unwrap();
    assert_eq!(record.state.name(), StateName::Completed);
    assert!(idempotency.inspect("default/charge/nobody").await.unwrap().is_none());
    let missing = idempotency.operation("charge").key("").record_key().unwrap_err();
    assert_eq!(missing.code(), "missing-key");
}

#[tokio::test]
async fn a_stuck_key_is_resolved_with_a_result_or_sent_back_to_work() {
    let idempotency = prepared().await;
    let charge = idempotency.operation("charge");
    let record = |key: &'static str| {
        let key = charge.key(key).record_key().unwrap();
        let idempotency = idempotency.clone();
        async move { idempotency.inspect(key.as_str()).await.unwrap().unwrap() }
    };
    let unknown = record("unknown").await;
    assert_eq!(charge.resolve_done(&unknown, &7).await.unwrap(), Compared::Changed);
    assert_eq!(answer(&idempotency, "unknown").await.unwrap(), 7);
    assert!(
        matches!(charge.resolve_done(&unknown, &8).await.unwrap(), Compared::Differs(Some(_))),
        "what was seen is not there any more"
    );
    let dropped = record("dropped").await;
    assert_eq!(idempotency.resolve_not_done(&dropped).await.unwrap(), Compared::Changed);
    assert_eq!(answer(&idempotency, "dropped").await.unwrap(), 99);

    let completed = record("completed").await;
    assert!(matches!(idempotency.resolve_not_done(&completed).await.unwrap(), Compared::Differs(Some(_))));
    assert_eq!(idempotency.forget(&completed).await.unwrap(), Compared::Changed);
    assert_eq!(answer(&idempotency, "completed").await.unwrap(), 99);
}

#[tokio::test]
async fn a_disabled_handle_has_nothing_to_repair() {
    let idempotency = Idempotency::disabled();
    assert!(idempotency.inspect("default/charge/o-1").await.is_err());
    assert!(idempotency.list(&ListQuery::default()).await.is_err());
    assert!(idempotency.purge(10).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_came_after_the_look_is_not_forgotten() {
    let (idempotency, store) = on_memory();
    let (finish, finished) = tokio::sync::oneshot::channel::<u32>();
    let call = idempotency.operation("charge").key("late");
    let mut late = Box::pin(call.run(|_| async { Ok::<_, Error>(finished.await.unwrap_or_default()) }));
    // Outside a runtime nothing renews: as if the process stood still.
    let begun =
        std::thread::scope(|scope| scope.spawn(|| tests::poll_times(late.as_mut(), 1).is_pending()).join());
    assert!(begun.unwrap());
    tokio::time::advance(Duration::from_secs(31)).await;
    let seen = tests::only_record(&store).await;
    assert!(seen.state.is_abandoned());
    finish.send(7).unwrap();
    assert_eq!(late.await.unwrap(), 7);
    assert!(matches!(idempotency.forget(&seen).await.unwrap(), Compared::Differs(Some(_))));
    assert_eq!(answer(&idempotency, "late").await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_record_with_finished_steps_is_forgotten_whole() {
    let (idempotency, store) = on_memory();
    let call = idempotency.operation("charge").key("steps");
    let dropped = call.run(|attempt| async move {
        attempt.step("a", || async { Ok::<u32, Error>(1) }).await?;
        std::future::pending::<Result<u32, Error>>().await
    });
    assert!(tokio::time::timeout(Duration::from_millis(1), dropped).await.is_err());
    idempotency.shutdown().await;
    let seen = tests::only_record(&store).await;
    assert_eq!((seen.steps.len(), idempotency.forget(&seen).await.unwrap()), (1, Compared::Changed));
    assert!(tests::records(&store).await.is_empty());
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again_with_the_same_token() {
    let store = Faults::new(MemoryStore::new());
    let idempotency = Idempotency::new(store.clone());
    let charge = idempotency.operation("charge").refuse_after_errors();
    for key in ["done", "forgotten"] {
        assert!(charge.key(key).run(|_| async { Err::<u32, _>(Error::NoAttempt) }).await.is_err());
    }
    let record = async |key: &str| {
        let key = charge.key(key).record_key().unwrap();
        idempotency.inspect(key.as_str()).await.unwrap().unwrap()
    };
    store.plan_nth(Operation::Load, 1, Fault::LoseReply);
    store.plan_nth(Operation::Resolve, 1, Fault::LoseReply);
    let done = record("done").await;
    assert_eq!(charge.resolve_done(&done, &7).await.unwrap(), Compared::Changed);
    assert_eq!(answer(&idempotency, "done").await.unwrap(), 7);
    let forgotten = record("forgotten").await;
    store.plan_nth(Operation::Forget, 1, Fault::LoseReply);
    assert_eq!(idempotency.forget(&forgotten).await.unwrap(), Compared::Changed);
    assert_eq!((store.count(Operation::Load), store.count(Operation::Resolve)), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_an_error_in_time() {
    let store = Faults::new(MemoryStore::new());
    let idempotency = Idempotency::new(store.clone());
    let charge = idempotency.operation("charge").refuse_after_errors();
    assert!(charge.key("1").run(|_| async { Err::<u32, _>(Error::NoAttempt) }).await.is_err());
    let key = charge.key("1").record_key().unwrap();
    let record = idempotency.inspect(key.as_str()).await.unwrap().unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    for operation in [Operation::Load, Operation::Resolve, Operation::Forget] {
        store.plan_always(operation, Fault::DelayRequest(day));
    }
    let started = tokio::time::Instant::now();
    assert!(idempotency.inspect(key.as_str()).await.unwrap_err().is_transient());
    assert!(idempotency.forget(&record).await.unwrap_err().is_transient());
    assert!(idempotency.resolve_not_done(&record).await.unwrap_err().is_transient());
    assert!(charge.resolve_done(&record, &1).await.unwrap_err().is_retryable());
    // Four times the handle's `store_timeout`, on a clock that no machine can slow down.
    assert!(started.elapsed() <= Duration::from_secs(20));
}
