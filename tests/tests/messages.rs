//! What errors say to those who print them: true in each case, and with what to do next.

use std::pin::pin;

use idempotent_runtime::store::StoreErrorKind;
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{Error, Idempotency, attempt, idempotent, step};
use tests::poll_times;

#[idempotent(key = "id")]
async fn never_ends(id: u32) -> Result<u32, Error> {
    std::future::pending::<()>().await;
    Ok(id)
}

#[idempotent(key = "id", on_error = "refuse")]
async fn fails(id: u32) -> Result<u32, Error> {
    let _ = id;
    Err(Error::NoAttempt)
}

#[tokio::test]
async fn a_call_in_progress_says_when_to_ask_again() {
    let idempotency = Idempotency::new(MemoryStore::new());
    let mut first = pin!(idempotency.within(never_ends(1)));
    assert!(poll_times(first.as_mut(), 20).is_pending());
    let said = idempotency.within(never_ends(1)).await.unwrap_err().to_string();
    assert!(said.contains("ended without an answer; ask again in 30 s"), "{said}");
}

#[tokio::test]
async fn an_unknown_outcome_says_how_to_resolve_it_after_silence_and_after_an_error_that_is_refused() {
    let idempotency = Idempotency::new(MemoryStore::new());
    {
        let mut first = pin!(idempotency.within(never_ends(1)));
        assert!(poll_times(first.as_mut(), 20).is_pending());
    }
    idempotency.shutdown().await;
    let silence = idempotency.within(never_ends(1)).await.unwrap_err();
    idempotency.within(fails(1)).await.unwrap_err();
    let refused = idempotency.within(fails(1)).await.unwrap_err();
    for error in [silence, refused] {
        assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
        let said = error.to_string();
        for words in ["gave no answer, or an error", "the program `idempotent`", "`Operation::resolve_done`"]
        {
            assert!(said.contains(words), "{said}");
        }
    }
}

#[tokio::test]
async fn a_step_outside_a_body_is_told_that_it_is_outside() {
    for error in [step("one", || async { Ok::<_, Error>(1) }).await.unwrap_err(), attempt().unwrap_err()] {
        let said = error.to_string();
        assert!(said.contains("`step()`") && said.contains("a task that the body spawns"), "{said}");
    }
}

#[tokio::test]
async fn a_spawned_task_without_a_handle_is_told_why() {
    let idempotency = Idempotency::new(MemoryStore::new());
    let spawned = idempotency.within(async { tokio::spawn(fails(2)).await.unwrap() }).await.unwrap_err();
    assert!(matches!(spawned, Error::NotConfigured { .. }), "{spawned:?}");
    assert!(spawned.to_string().contains("a spawned task does not inherit `within`"), "{spawned}");
}

/// The store's own words may quote a key. They are in its error, which is the source.
#[tokio::test]
async fn what_a_store_says_is_in_its_own_error_and_not_in_that_of_the_call() {
    let store = Faults::new(MemoryStore::new());
    store.plan_always(Operation::Reserve, Fault::Refuse(StoreErrorKind::Refused));
    let error = Idempotency::new(store).within(fails(3)).await.unwrap_err();
    assert!(error.to_string().ends_with("the memory store refused"), "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "the memory store refused: refused, as planned");
}
