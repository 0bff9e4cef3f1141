//! Counters and histograms, as a recorder of the `metrics` crate sees them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, ManualClock, Operation};
use idempotent_runtime::{Error, Idempotency, OnCrash, OnMissingKey};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tests::on_memory;
use tokio::time::{sleep, timeout};

const SECRET: &str = "tell-nobody";

/// One metric: name, labels, value, and whether it has a unit and a description.
struct Seen {
    name: String,
    labels: Vec<(String, String)>,
    value: DebugValue,
    described: bool,
}

/// A recorder for this thread; its guard has to live as long as the test.
fn recorder() -> (Snapshotter, metrics::LocalRecorderGuard<'static>) {
    let recorder: &'static DebuggingRecorder = Box::leak(Box::default());
    (recorder.snapshotter(), metrics::set_default_local_recorder(recorder))
}

fn seen(snapshotter: &Snapshotter) -> Vec<Seen> {
    let metrics = snapshotter.snapshot().into_vec();
    let seen = metrics.into_iter().map(|(key, unit, description, value)| Seen {
        name: key.key().name().to_owned(),
        labels: key.key().labels().map(|label| (label.key().into(), label.value().into())).collect(),
        value,
        described: unit.is_some() && description.is_some(),
    });
    seen.collect()
}

/// The value of a counter.
fn count(seen: &[Seen], name: &str, operation: &str, outcome: &str) -> u64 {
    let labels = [("operation".into(), operation.into()), ("outcome".into(), outcome.into())];
    let found = seen.iter().find(|seen| seen.name == name && seen.labels == labels);
    match found.map(|seen| &seen.value) {
        Some(DebugValue::Counter(value)) => *value,
        None => 0,
        Some(other) => panic!("{other:?}"),
    }
}

/// The values of a histogram in seconds.
fn seconds(seen: &[Seen], name: &str, operation: &str, outcome: &str) -> Vec<f64> {
    let labels = [("operation".into(), operation.into()), ("outcome".into(), outcome.into())];
    let found = seen.iter().find(|seen| seen.name == name && seen.labels == labels);
    match found.map(|seen| &seen.value) {
        Some(DebugValue::Histogram(values)) => values.iter().map(|value| value.into_inner()).collect(),
        None => Vec::new(),
        Some(other) => panic!("{other:?}"),
    }
}

async fn runs(idempotency: &Idempotency, argument: u32) -> Result<String, Error> {
    let call = idempotency.operation("charge").on_crash(OnCrash::Retry).key(SECRET).fingerprint(&argument);
    call.run(|_| async { Ok(SECRET.to_owned()) }).await
}

#[tokio::test(start_paused = true)]
async fn every_outcome_of_a_call_is_counted_once() {
    let (snapshotter, _guard) = recorder();
    let (idempotency, _) = on_memory();
    let call = idempotency.operation("charge").on_crash(OnCrash::Retry).key(SECRET).fingerprint(&1);
    let dropped = call.run(|_| std::future::pending::<Result<String, Error>>());
    assert!(timeout(Duration::from_millis(1), dropped).await.is_err());
    idempotency.shutdown().await;
    runs(&idempotency, 1).await.unwrap();
    runs(&idempotency, 1).await.unwrap();
    runs(&idempotency, 1).await.unwrap();
    runs(&idempotency, 2).await.unwrap_err();
    let keyless = idempotency.operation("keyless").on_missing_key(OnMissingKey::Run).key("");
    keyless.run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    let small = Idempotency::builder().store(MemoryStore::new()).max_result_bytes(3).build().unwrap();
    runs(&small, 1).await.unwrap();

    let seen = seen(&snapshotter);
    for (operation, outcome, times) in [
        ("charge", "dropped", 1),
        ("charge", "executed", 1),
        ("charge", "replayed", 2),
        ("charge", "key-reused", 1),
        ("charge", "unrecorded-too-large", 1),
        ("keyless", "unprotected", 1),
    ] {
        assert_eq!(count(&seen, "idempotent_calls_total", operation, outcome), times, "{outcome}");
        let spans = seconds(&seen, "idempotent_call_seconds", operation, outcome);
        assert_eq!(spans.len(), usize::try_from(times).unwrap(), "{outcome}");
    }
    assert_eq!(count(&seen, "idempotent_incidents_total", "charge", "taken-over"), 1);
    let calls = seen.iter().filter(|seen| seen.name == "idempotent_calls_total").count();
    assert_eq!(calls, 6, "and nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_body_and_each_try_of_a_store_call_are_timed() {
    let (snapshotter, _guard) = recorder();
    let store = Faults::new(MemoryStore::new())
        .nth(Operation::Reserve, 1, Fault::LoseRequest)
        .nth(Operation::Complete, 1, Fault::DelayRequest(Duration::from_secs(1)))
        .nth(Operation::Complete, 2, Fault::DelayRequest(Duration::from_secs(100)));
    let idempotency = Idempotency::new(Arc::new(store));
    let slow = |key: &'static str| {
        let call = idempotency.operation("charge").key(key);
        call.run(|_| async {
            sleep(Duration::from_secs(11)).await;
            Ok::<_, Error>(1)
        })
    };
    slow("a").await.unwrap();
    slow("b").await.unwrap();
    idempotency.shutdown().await;

    let seen = seen(&snapshotter);
    let bodies = seconds(&seen, "idempotent_body_seconds", "charge", "ended");
    assert!(bodies.len() == 2 && bodies.iter().all(|took| (11.0..11.1).contains(took)), "{bodies:?}");
    let store = |operation, outcome| seconds(&seen, "idempotent_store_seconds", operation, outcome);
    assert_eq!((store("reserve", "ok").len(), store("reserve", "unavailable").len()), (2, 1));
    assert_eq!(store("renew", "ok").len(), 2);
    let completed = store("complete", "ok");
    assert!(completed.len() == 2 && completed[0] >= 1.0, "{completed:?}");
    assert!(store("complete", "no-answer").iter().all(|took| *took >= 2.5));
    assert_eq!(count(&seen, "idempotent_store_errors_total", "reserve", "unavailable"), 1);
    assert_eq!(count(&seen, "idempotent_store_errors_total", "complete", "no-answer"), 1);
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_and_work_in_the_background_are_shown_while_they_last() {
    let (snapshotter, _guard) = recorder();
    let store = Faults::new(MemoryStore::new())
        .nth(Operation::Complete, 1, Fault::DelayRequest(Duration::from_secs(100)))
        .nth(Operation::Complete, 2, Fault::DelayRequest(Duration::from_secs(100)))
        .nth(Operation::Complete, 3, Fault::DelayRequest(Duration::from_secs(100)));
    let idempotency =
        Idempotency::builder().store(Arc::new(store)).wait(Duration::from_secs(120)).build().unwrap();
    let first = idempotency.clone();
    let first = tokio::spawn(async move { runs(&first, 1).await });
    sleep(Duration::from_secs(1)).await;
    let second = idempotency.clone();
    let waiting = tokio::spawn(async move { runs(&second, 1).await });
    sleep(Duration::from_secs(1)).await;
    let gauge = |seen: &[Seen], name: &str| match seen.iter().find(|seen| seen.name == name).unwrap().value {
        DebugValue::Gauge(value) => value.into_inner(),
        ref other => panic!("{other:?}"),
    };
    let now = seen(&snapshotter);
    assert!((gauge(&now, "idempotent_waiting_calls") - 1.0).abs() < 0.1);
    first.await.unwrap().unwrap();
    let now = seen(&snapshotter);
    assert!((gauge(&now, "idempotent_background_tasks") - 1.0).abs() < 0.1);
    waiting.await.unwrap().unwrap();
    idempotency.shutdown().await;
    let now = seen(&snapshotter);
    // A look at this recorder sets it back, so that what is seen is what has ended since.
    assert!((gauge(&now, "idempotent_background_tasks") + 1.0).abs() < 0.1);
    assert!((gauge(&now, "idempotent_waiting_calls") + 1.0).abs() < 0.1);
}

#[tokio::test(start_paused = true)]
async fn purged_records_are_counted() {
    let (snapshotter, _guard) = recorder();
    let clock = ManualClock::default();
    let store = Arc::new(Faults::new(MemoryStore::builder().clock(clock.clone()).build()));
    let idempotency = Idempotency::new(Arc::clone(&store));
    for number in 0..3 {
        idempotency.operation("charge").key(&number).run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    }
    clock.advance(Duration::from_secs(100_000));
    let _purging = idempotency.purge_every(Duration::from_secs(10));
    sleep(Duration::from_secs(12)).await;
    store.plan_nth(Operation::Purge, 1, Fault::LoseRequest);
    sleep(Duration::from_secs(10)).await;
    let seen = seen(&snapshotter);
    let value = |name: &str| match seen.iter().find(|seen| seen.name == name).map(|seen| &seen.value) {
        Some(DebugValue::Counter(value)) => *value,
        other => panic!("{other:?}"),
    };
    assert_eq!(value("idempotent_purged_records_total"), 3);
    assert_eq!(value("idempotent_purge_failures_total"), 1);
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_described_documented_and_free_of_data() {
    let (snapshotter, _guard) = recorder();
    idempotent_runtime::describe_metrics();
    let store = Faults::new(MemoryStore::new());
    let store = store.nth(Operation::Reserve, 1, Fault::LoseRequest);
    let idempotency = Idempotency::builder().store(Arc::new(store)).wait(Duration::from_secs(5));
    let idempotency = idempotency.build().unwrap();
    let (first, second) = (runs(&idempotency, 1), runs(&idempotency, 1));
    let _ = tokio::join!(first, second);
    let call = idempotency.operation("charge").on_crash(OnCrash::Retry).key(SECRET).fingerprint(&3);
    call.run(|_| async { Ok::<_, Error>(1) }).await.unwrap_err();
    for seen in seen(&snapshotter) {
        assert!(seen.described, "{}", seen.name);
        for (label, value) in &seen.labels {
            assert!(["operation", "outcome"].contains(&&**label) && value != SECRET, "{label}={value}");
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let code = fs::read_to_string(root.join("idempotent-runtime/src/meters/recorded.rs")).unwrap();
    let named = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("idempotent_")).map(ToOwned::to_owned).collect()
    };
    let docs = fs::read_to_string(root.join("docs/operations.md")).unwrap();
    let section = docs.split_once("## Metrics\n").unwrap().1.split_once("\n## ").unwrap().0;
    assert_eq!(named(section), named(&code));
}
