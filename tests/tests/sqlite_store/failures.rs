//! What happens when the database does not do what it is asked: every caller hears of it, and the store lives on.

use std::time::{Duration, Instant};

use idempotent_runtime::store::{OwnerToken, Release, Reserved, State, Store, StoreErrorKind, Write};
use idempotent_runtime::stores::{Clock, SqliteStore};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_database_is_waited_for_and_works_afterwards() {
    let folder = Folder::new();
    let store = SqliteStore::builder(folder.file()).busy_timeout(Duration::from_millis(300));
    let store = store.open().await.unwrap();
    let (settled, owner) = (key("settled"), OwnerToken::random());
    grant(&store, &settled, owner).await;
    store.complete(&settled, owner, &completed("kept"), KEEP).await.unwrap();
    let running = key("running");
    grant(&store, &running, OwnerToken::random()).await;

    let other = beside(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let (new, fresh) = (key("new"), OwnerToken::random());
    let waiting = tokio::spawn({
        let (store, new) = (store.clone(), new.clone());
        async move { store.reserve(request(&new, fresh)).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    // Replays, looks and duplicates of a running call need no lock.
    assert_eq!(held(&store, &settled).await.state, State::Settled(completed("kept")));
    assert!(matches!(held(&store, &running).await.state, State::Running { .. }));
    assert!(store.load(&settled).await.unwrap().is_some());
    assert!(store.load(&new).await.unwrap().is_none());
    assert!(begun.elapsed() < Duration::from_millis(250), "reads went on meanwhile");

    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(words(&error).contains("locked"), "{}", words(&error));
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(300) && waited < Duration::from_secs(3), "{waited:?}");

    // One that is still waiting when the lock is let go gets it.
    let waiting = tokio::spawn({
        let (store, new) = (store.clone(), new.clone());
        async move { store.reserve(request(&new, fresh)).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(waiting.await.unwrap().unwrap(), Reserved::Granted(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failing_operation_leaves_the_others_of_its_batch_alone() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    beside(&folder.file())
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON idempotency WHEN NEW.key LIKE '%poison%' \
             BEGIN SELECT RAISE(ABORT, 'no such customer'); END",
        )
        .unwrap();
    let outcomes = together(&store, &folder, "poison").await;
    for (n, outcome) in outcomes.iter().enumerate() {
        if n == POISONED {
            assert_eq!(outcome.as_ref().unwrap_err().kind(), StoreErrorKind::Refused);
            assert!(words(outcome.as_ref().unwrap_err()).contains("no such customer"));
        } else {
            assert!(matches!(outcome, Ok(Reserved::Granted(_))), "{n}: {outcome:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_taken_back_is_told_to_all_who_were_in_it() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    beside(&folder.file())
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON idempotency WHEN NEW.key LIKE '%poison%' \
             BEGIN SELECT RAISE(ROLLBACK, 'everything back'); END",
        )
        .unwrap();
    let outcomes = together(&store, &folder, "poison").await;
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let stored = store.load(&key(&name(n, "poison"))).await.unwrap();
        match outcome {
            // One that came in another batch.
            Ok(_) => assert!(stored.is_some()),
            Err(error) if n == POISONED => assert_eq!(error.kind(), StoreErrorKind::Refused),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Unavailable);
                assert!(stored.is_none(), "{n} was told that it failed");
            }
        }
    }
    grant(&store, &key("after"), OwnerToken::random()).await;
}

const POISONED: usize = 7;

fn name(n: usize, poison: &str) -> String {
    if n == POISONED { poison.to_owned() } else { format!("batch-{n}") }
}

/// Reserves 20 keys while the database is locked, so that they end up in one transaction.
async fn together(
    store: &SqliteStore,
    folder: &Folder,
    poison: &str,
) -> Vec<idempotent_runtime::store::StoreResult<Reserved>> {
    let other = beside(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let (store, k) = (store.clone(), key(&name(n, poison)));
            tokio::spawn(async move { store.reserve(request(&k, OwnerToken::random())).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.execute_batch("COMMIT").unwrap();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_went_away_gets_no_reservation_but_everything_else() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let (running, owner) = (key("running"), OwnerToken::random());
    grant(&store, &running, owner).await;

    let other = beside(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let gone = key("gone");
    let short = Duration::from_millis(50);
    let reserving = tokio::time::timeout(short, store.reserve(request(&gone, OwnerToken::random())));
    assert!(reserving.await.is_err());
    let result = completed("done");
    let completing = tokio::time::timeout(short, store.complete(&running, owner, &result, KEEP));
    assert!(completing.await.is_err());
    other.execute_batch("COMMIT").unwrap();

    store.release(&key("none"), owner, Release::Forget).await.unwrap();
    assert_eq!(store.load(&gone).await.unwrap(), None);
    assert_eq!(held(&store, &running).await.state, State::Settled(result));
}

#[tokio::test]
async fn what_was_asked_before_the_last_handle_went_is_done() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    {
        let mut completing =
            Box::pin(async move { store.complete(&key("1"), owner, &completed("x"), KEEP).await });
        // Polled once: sent, and then nobody is left to hear the answer.
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(completing.as_mut().poll(context)));
        let _ = polled.await;
    }
    let store = SqliteStore::open(folder.file()).await.unwrap();
    for _ in 0..200 {
        if !matches!(held(&store, &k).await.state, State::Running { .. }) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the completion was lost");
}

#[tokio::test]
async fn a_closed_store_refuses() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let twin = store.clone();
    store.close().await;
    twin.close().await;
    let error = twin.load(&key("1")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("closed"));
}

#[tokio::test]
async fn a_deleted_file_is_noticed_and_not_replaced_by_an_empty_one() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    beside(&folder.file()).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let saved = folder.path().join("saved");
    std::fs::rename(folder.file(), &saved).unwrap();
    let _ = std::fs::remove_file(folder.path().join("records.db-wal"));
    let _ = std::fs::remove_file(folder.path().join("records.db-shm"));

    for _ in 0..2 {
        let error = store.reserve(request(&k, OwnerToken::random())).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
        assert!(words(&error).contains("records.db"), "{}", words(&error));
    }
    assert!(!folder.file().exists());
    std::fs::rename(&saved, folder.file()).unwrap();
    assert_eq!(held(&store, &k).await.owner, owner);
    assert_eq!(store.complete(&k, owner, &completed("x"), KEEP).await.unwrap(), Write::Applied);
}

#[tokio::test]
async fn tables_that_go_missing_are_named() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    beside(&folder.file()).execute_batch("DROP TABLE idempotency; DROP TABLE idempotency_meta").unwrap();
    for _ in 0..2 {
        let error = store.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        assert!(words(&error).contains("SqliteStoreBuilder::schema"), "{}", words(&error));
    }
    beside(&folder.file()).execute_batch("DROP TABLE idempotency_steps").unwrap();
    let schema = SqliteStore::builder(folder.file()).schema().unwrap();
    beside(&folder.file()).execute_batch(&schema).unwrap();
    grant(&store, &key("1"), OwnerToken::random()).await;
}

#[tokio::test]
async fn a_newer_version_is_refused_also_when_it_comes_later() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    beside(&folder.file()).execute_batch("UPDATE idempotency_meta SET version = 2").unwrap();
    let later = store.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
    let first = SqliteStore::open(folder.file()).await.unwrap_err();
    for error in [later, first] {
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        assert!(words(&error).contains("version 2"), "{}", words(&error));
    }
}

#[tokio::test]
async fn a_panicking_clock_does_not_end_the_store() {
    #[derive(Debug)]
    struct Broken(std::sync::atomic::AtomicU32);
    impl Clock for Broken {
        fn now(&self) -> Duration {
            let asked = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(asked != 2, "the clock fell off the wall");
            Duration::from_secs(1000)
        }
    }
    let folder = Folder::new();
    let clock = Broken(std::sync::atomic::AtomicU32::new(0));
    let store = SqliteStore::builder(folder.file()).clock(clock).open().await.unwrap();
    let mut failed = 0;
    for n in 0..10 {
        let owner = OwnerToken::random();
        match store.reserve(request(&key(&n.to_string()), owner)).await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Unavailable);
                failed += 1;
            }
        }
    }
    assert_eq!(failed, 1);
}

#[tokio::test]
async fn a_meta_table_that_was_emptied_is_refused() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    beside(&folder.file()).execute_batch("DELETE FROM idempotency_meta").unwrap();
    let error = store.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
}
