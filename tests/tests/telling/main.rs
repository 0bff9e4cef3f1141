//! What the library tells: each event of the table in `docs/operations.md`, and no other; and nobody's data.

mod collector;
mod scenes;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use collector::{Collector, Told};
use idempotent_runtime::{Error, Idempotency};
use scenes::SECRET;
use table::{operations, rows};

/// What is told when every scene is played, once for all tests.
fn everything() -> &'static [Told] {
    static TOLD: OnceLock<Vec<Told>> = OnceLock::new();
    TOLD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(play())
    })
}

async fn play() -> Vec<Told> {
    let collector = Collector::default();
    let _guard = collector.listen();
    scenes::replayed().await;
    scenes::refused().await;
    scenes::given_back().await;
    scenes::taken_over().await;
    scenes::left_to_its_lease();
    scenes::renewal_late().await;
    scenes::lease_lost().await;
    scenes::lease_unconfirmed().await;
    scenes::max_run_over().await;
    scenes::cancelled().await;
    scenes::gave_up_recording().await;
    scenes::not_serializable().await;
    scenes::unreadable().await;
    scenes::unprotected().await;
    scenes::reconciled().await;
    scenes::purged().await;
    collector.all()
}

#[test]
fn the_table_of_events_and_the_events_are_the_same() {
    let told: BTreeSet<_> =
        everything().iter().map(|told| (told.level.clone(), told.message.clone())).collect();
    let table: BTreeSet<_> =
        rows(&operations(), "## Events").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(told, table);
}

#[test]
fn no_key_argument_or_result_is_told() {
    for told in everything() {
        assert!(!format!("{told:?}").contains(SECRET), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_told_to_those_who_ask() {
    let collector = Collector::default();
    let _guard = collector.listen();
    let idempotency = Idempotency::builder()
        .store(idempotent_runtime::stores::MemoryStore::new())
        .expose_keys(true)
        .build()
        .unwrap();
    idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    assert_eq!(collector.only("executed").fields["key"], "default/charge/o-1");
}

#[test]
fn every_outcome_comes_with_its_operation_attempt_and_time() {
    for told in everything().iter().filter(|told| told.fields.contains_key("outcome")) {
        for field in ["operation", "elapsed"] {
            assert!(told.fields.contains_key(field), "{field} of {told:?}");
        }
        let has_none = ["refused", "executed unprotected"].contains(&&*told.message);
        assert_eq!(told.fields.contains_key("attempt"), !has_none, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_an_outcome_is_that_of_the_whole_call() {
    let collector = Collector::default();
    let _guard = collector.listen();
    let call = scenes::scene().call();
    let slow = call.run(|_| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok::<_, Error>(1)
    });
    slow.await.unwrap();
    let told = collector.only("executed");
    assert_eq!(told.fields["outcome"], "executed");
    let elapsed = &told.fields["elapsed"];
    assert!(elapsed.starts_with("3.") || elapsed == "3s", "{elapsed}");
}

/// Every place in the library that makes an event, as the level and the message in its text.
fn events_in(folder: &Path, found: &mut Vec<(PathBuf, String, String)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            events_in(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for level in ["error", "warn", "info", "debug", "trace"] {
                for (start, name) in text.match_indices(&format!("tracing::{level}!(")) {
                    let call = &text[start + name.len()..];
                    let call = &call[..call.find(");").unwrap_or(call.len())];
                    assert!(call.contains("target: \"idempotent\""), "{}: {call}", path.display());
                    let message = call.rsplit('"').nth(1).unwrap().to_owned();
                    found.push((path.clone(), level.to_owned(), message));
                }
            }
        }
    }
}

#[test]
fn the_table_of_the_stores_and_the_clients_events_has_those_in_the_code() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../idempotent-runtime/src");
    let mut found = Vec::new();
    events_in(&library.join("stores"), &mut found);
    events_in(&library.join("client"), &mut found);
    let found: BTreeSet<_> = found
        .into_iter()
        // What the server is found to lack has words of its own.
        .map(|(_, level, message)| (level, if message == "{finding}" { "a finding".into() } else { message }))
        .collect();
    let table: BTreeSet<_> = rows(&operations(), "### Of the stores and of the client")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    assert_eq!(found, table);
    let mut everywhere = Vec::new();
    events_in(&library, &mut everywhere);
    let elsewhere = everywhere.iter().filter(|(path, ..)| {
        !path.starts_with(library.join("stores")) && !path.starts_with(library.join("client"))
    });
    for (path, ..) in elsewhere {
        assert!(path.ends_with("events.rs"), "{} has an event of its own", path.display());
    }
}
