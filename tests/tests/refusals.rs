//! Calls that give an error of the library: which, when, with what in it, and that the body has not run.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use idempotent_runtime::{ConfigError, Error, Idempotency, OnCrash, OnMissingKey, Outcome, with_outcome};
use serde::{Serialize, Serializer};
use tests::{Order, Runs, on_memory, on_memory_with, poll_times, records};

/// Runs a body that never ends in the background, and comes back when it runs.
async fn hold(idempotency: &Idempotency, key: &'static str, argument: u32) -> tokio::task::JoinHandle<()> {
    let call = idempotency.operation("charge").key(key).fingerprint(&argument);
    let (started, running) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let _: Result<(), Error> = call
            .run(|_| async {
                let _ = started.send(());
                std::future::pending().await
            })
            .await;
    });
    running.await.unwrap();
    task
}

async fn error_of(idempotency: &Idempotency, key: &'static str, argument: u32) -> Error {
    let call = idempotency.operation("charge").key(key).fingerprint(&argument);
    call.run(|_| async { Ok::<(), Error>(()) }).await.unwrap_err()
}

#[tokio::test]
async fn a_duplicate_of_a_running_call_is_in_progress() {
    let (idempotency, _) = on_memory();
    let _held = hold(&idempotency, "o-1", 1).await;
    let error = error_of(&idempotency, "o-1", 1).await;
    assert_eq!((error.code(), error.is_retryable(), error.http_status()), ("in-progress", true, 409));
    assert_eq!(error.operation(), Some("charge"));
    let retry_after = error.retry_after().unwrap();
    assert!(
        retry_after > Duration::from_secs(25) && retry_after <= Duration::from_secs(30),
        "{retry_after:?}"
    );
}

#[tokio::test]
async fn other_arguments_are_a_reused_key_also_while_the_first_call_runs() {
    let (idempotency, _) = on_memory();
    let _held = hold(&idempotency, "o-1", 1).await;
    let error = error_of(&idempotency, "o-1", 2).await;
    assert_eq!((error.code(), error.is_retryable(), error.http_status()), ("key-reused", false, 422));
    assert_eq!(error.to_string(), "charge: this key was used with other arguments (its record is running)");
}

/// Nobody works under the arguments of the dead but who brings the same.
#[tokio::test(start_paused = true)]
async fn other_arguments_are_a_reused_key_after_a_crash_under_every_policy() {
    for policy in [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects] {
        let (idempotency, store) = on_memory();
        let operation = idempotency.operation("charge").on_crash(policy);
        let dies = operation.key("o-1").fingerprint(&1).run(|_| std::future::pending::<Result<u32, Error>>());
        assert!(tokio::time::timeout(Duration::from_millis(1), dies).await.is_err());
        idempotency.shutdown().await;
        let before = records(&store).await;
        let runs = Runs::default();
        let other = operation.key("o-1").fingerprint(&2).run(|_| async { Ok::<_, Error>(runs.count()) });
        assert_eq!(other.await.unwrap_err().code(), "key-reused", "{policy:?}");
        assert_eq!((runs.total(), records(&store).await[0].attempt), (0, before[0].attempt), "{policy:?}");
        let same = operation.key("o-1").fingerprint(&1).run(|_| async { Ok::<_, Error>(runs.count()) });
        let expected = if policy == OnCrash::Refuse { "outcome-unknown" } else { "runs" };
        assert_eq!(same.await.as_ref().map_or_else(Error::code, |_| "runs"), expected, "{policy:?}");
    }
}

#[tokio::test]
async fn other_arguments_are_a_reused_key_after_completion_and_the_first_ones_still_replay() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge");
    let (first, other) = (Order::new("o-1", 5), Order::new("o-1", 6));
    let runs = Runs::default();
    let call = |order: &Order| {
        charge.key(&order.id).fingerprint(order).run(|_| async { Ok::<_, Error>(runs.count()) })
    };
    assert_eq!(call(&first).await.unwrap(), 1);
    assert_eq!(call(&other).await.unwrap_err().code(), "key-reused");
    assert_eq!(call(&first).await.unwrap(), 1);
    assert_eq!(runs.total(), 1);
}

#[tokio::test]
async fn a_call_inside_its_own_body_is_an_error_at_once() {
    let (idempotency, _) = on_memory_with(|builder| builder.wait(Duration::from_secs(3600)));
    let charge = idempotency.operation("charge");
    let inner = charge.key("o-1");
    let result = charge.key("o-1").run(|_| inner.run(|_| async { Ok::<(), Error>(()) }));
    assert_eq!(result.await.unwrap_err().code(), "reentrant");

    let mail = idempotency.operation("mail");
    let (between, inner) = (mail.key("o-1"), charge.key("o-1"));
    let result = charge.key("o-1").run(|_| between.run(|_| inner.run(|_| async { Ok::<(), Error>(()) })));
    assert_eq!(result.await.unwrap_err().code(), "reentrant", "also through another operation");
}

#[tokio::test]
async fn without_a_handle_nothing_runs() {
    #[derive(Debug)]
    struct Code(&'static str);
    impl From<Error> for Code {
        fn from(error: Error) -> Self {
            assert!(error.to_string().contains("install"), "says what to do: {error}");
            Self(error.code())
        }
    }
    assert_eq!(Idempotency::builder().build().unwrap_err(), ConfigError::NoStore);
    let _ = Code("").0;
}

#[tokio::test]
async fn what_is_null_or_empty_is_no_key() {
    let (idempotency, store) = on_memory();
    let runs = Runs::default();
    let missing = |key: serde_json::Value| {
        let call = idempotency.operation("charge").key(&key);
        let runs = runs.clone();
        async move {
            call.run(|_| async { Ok::<_, Error>(runs.count()) })
                .await
                .is_err_and(|e| e.code() == "missing-key")
        }
    };
    use serde_json::json;
    for key in [json!(null), json!(""), json!(" \t"), json!([]), json!({}), json!([null]), json!({"a": null})]
    {
        assert!(missing(key.clone()).await, "{key}");
    }
    assert_eq!((runs.total(), records(&store).await.len()), (0, 0));
    for key in [json!(0), json!(false), json!([0]), json!({"a": 0})] {
        assert!(!missing(key.clone()).await, "{key}");
    }
    let none = idempotency.operation("charge").key("o-1").and(&None::<u32>);
    assert_eq!(none.run(|_| async { Ok::<(), Error>(()) }).await.unwrap_err().code(), "missing-key");
}

#[tokio::test]
async fn a_missing_key_runs_unprotected_where_that_is_allowed() {
    let (idempotency, store) = on_memory();
    let runs = Runs::default();
    for expected in [1, 2] {
        let call = idempotency.operation("charge").on_missing_key(OnMissingKey::Run).key(&None::<u32>);
        let (result, outcome) = with_outcome(call.run(|_| async { Ok::<_, Error>(runs.count()) })).await;
        assert_eq!((result.unwrap(), outcome), (expected, Some(Outcome::Unprotected)));
    }
    assert!(records(&store).await.is_empty());
}

struct Unserializable;

impl Serialize for Unserializable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("a reason"))
    }
}

#[tokio::test]
async fn an_argument_that_cannot_be_serialized_stops_the_call_before_the_body() {
    let (idempotency, store) = on_memory();
    let call = idempotency.operation("charge").key("o-1").fingerprint(&Unserializable);
    let error = call.run(|_| async { Ok::<(), Error>(()) }).await.unwrap_err();
    assert_eq!(error.to_string(), "charge: `argument` cannot be serialized: a reason");
    let call = idempotency.operation("charge").key(&Unserializable);
    let error = call.run(|_| async { Ok::<(), Error>(()) }).await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("a reason")), ("argument", true));
    assert!(records(&store).await.is_empty());
}

#[tokio::test]
async fn no_error_shows_a_key_or_an_argument() {
    let (idempotency, _) = on_memory();
    let _held = hold(&idempotency, "4711-secret", 99_887_766).await;
    for argument in [99_887_766, 11_223_344] {
        let error = error_of(&idempotency, "4711-secret", argument).await;
        let text = format!("{error} {error:?} {:?}", error.source());
        for secret in ["4711", "99887766", "11223344", "99_887_766"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[tokio::test]
async fn names_that_leave_no_room_for_a_key_are_refused() {
    let (idempotency, _) = on_memory();
    for name in [String::new(), "x".repeat(181)] {
        let call = idempotency.operation(name).key("o-1");
        assert_eq!(call.run(|_| async { Ok::<(), Error>(()) }).await.unwrap_err().code(), "not-configured");
    }
    let namespace = Idempotency::builder().store(on_memory().1).namespace("n".repeat(181)).build();
    assert_eq!(namespace.unwrap_err(), ConfigError::Namespace);
}

#[test]
fn settings_that_cannot_work_are_refused_with_their_names() {
    let build =
        |settings: fn(idempotent_runtime::IdempotencyBuilder) -> idempotent_runtime::IdempotencyBuilder| {
            settings(Idempotency::builder().store(on_memory().1)).build().unwrap_err().to_string()
        };
    assert!(build(|b| b.ttl(Duration::ZERO)).contains("`ttl`"));
    assert!(build(|b| b.lease(Duration::from_micros(1))).contains("`lease`"));
    assert!(build(|b| b.unknown_ttl(Duration::ZERO)).contains("`unknown_ttl`"));
    assert!(build(|b| b.store_timeout(Duration::ZERO)).contains("`store_timeout`"));
    assert!(build(|b| b.max_attempts(0)).contains("`max_attempts`"));
    assert!(build(|b| b.namespace(" ")).contains("namespace"));
}

#[tokio::test]
async fn operations_and_namespaces_and_composite_keys_do_not_meet() {
    let store = on_memory().1;
    let runs = Runs::default();
    let mut seen = BTreeMap::new();
    for (namespace, operation, parts) in [
        ("shop", "charge", vec!["a:b", "c"]),
        ("shop", "charge", vec!["a", "b:c"]),
        ("shop", "charge", vec!["a", "b", "c"]),
        ("shop", "charge", vec!["a/b", "c"]),
        ("shop", "charge/a", vec!["b", "c"]),
        ("shop/charge", "a", vec!["b", "c"]),
        ("shop", "mail", vec!["a", "b:c"]),
        ("other", "charge", vec!["a", "b:c"]),
        ("shop", "charge", vec!["A", "b:c"]),
        ("shop", "charge", vec!["a", "b:c "]),
    ] {
        let idempotency = Idempotency::builder().store(store.clone()).namespace(namespace).build().unwrap();
        let mut call = idempotency.operation(operation).key(parts[0]);
        for part in &parts[1..] {
            call = call.and(part);
        }
        let run = call.run(|_| async { Ok::<_, Error>(runs.count()) }).await.unwrap();
        assert!(seen.insert(run, (namespace, operation, parts)).is_none());
    }
    assert_eq!(runs.total(), 10);
}

#[tokio::test]
async fn a_call_that_was_never_polled_leaves_nothing() {
    let (idempotency, store) = on_memory();
    let call = idempotency.operation("charge").key("o-1").run(|_| async { Ok::<(), Error>(()) });
    let mut call = Box::pin(call);
    assert!(poll_times(call.as_mut(), 0).is_pending());
    drop(call);
    assert!(records(&store).await.is_empty());
}

#[tokio::test]
async fn an_operation_cannot_ask_for_no_lease_or_no_ttl() {
    let (idempotency, store) = on_memory();
    let charge = || idempotency.operation("charge");
    for operation in [charge().lease(Duration::ZERO), charge().ttl(Duration::from_micros(999))] {
        let refused = operation.key("o-1").run(|_| async { Ok::<(), Error>(()) }).await.unwrap_err();
        assert_eq!(refused.code(), "not-configured");
        assert!(records(&store).await.is_empty());
    }
}

#[tokio::test]
async fn a_call_inside_its_own_body_is_an_error_at_once_through_an_unprotected_call_too() {
    let (idempotency, _) = on_memory_with(|builder| builder.wait(Duration::from_secs(3600)));
    let charge = idempotency.operation("charge");
    let unprotected = idempotency.operation("mail").on_missing_key(OnMissingKey::Run);
    let result = charge.key("o-1").run(|_| async {
        let inner = charge.key("o-1");
        unprotected.key("").run(|_| inner.run(|_| async { Ok::<(), Error>(()) })).await
    });
    assert_eq!(result.await.unwrap_err().code(), "reentrant");
}

#[tokio::test(start_paused = true)]
async fn a_call_inside_its_own_body_is_an_error_at_once_through_another_handle_of_the_store_too() {
    let store: std::sync::Arc<dyn idempotent_runtime::store::Store> =
        std::sync::Arc::new(idempotent_runtime::stores::MemoryStore::new());
    let outer = Idempotency::new(std::sync::Arc::clone(&store));
    let inner = Idempotency::builder().store(store).wait(Duration::from_secs(60)).build().unwrap();
    let started = tokio::time::Instant::now();
    let call = outer.operation("charge").key("o-1");
    let result = call.run(|_| async move {
        inner.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(1) }).await
    });
    assert_eq!((result.await.unwrap_err().code(), started.elapsed()), ("reentrant", Duration::ZERO));
}
