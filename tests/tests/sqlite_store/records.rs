//! What the tables hold.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, Release, Resolution, Settled, State, StateName, Step, StepState,
    Store, StoreErrorKind, TakeOver, Write,
};
use idempotent_runtime::stores::SqliteStore;
use idempotent_runtime::testing::ManualClock;

use crate::support::*;

#[tokio::test]
async fn a_record_survives_reopening() {
    let folder = Folder::new();
    let (k, owner) = (key("1"), OwnerToken::random());
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let granted = grant(&store, &k, owner).await;
    assert_eq!(store.complete(&k, owner, &completed("done"), KEEP).await.unwrap(), Write::Applied);
    store.close().await;
    assert!(!folder.path().join("records.db-wal").exists(), "a closed file is one file");

    let store = SqliteStore::open(folder.file()).await.unwrap();
    let record = held(&store, &k).await;
    assert_eq!(record.state, State::Settled(completed("done")));
    assert_eq!((record.owner, record.attempt, record.fence), (owner, 1, granted.fence));
    assert_eq!(record.fingerprint, FINGERPRINT);
    assert_eq!(&**record.key.operation(), "charge");
}

#[tokio::test]
async fn a_lease_and_a_ttl_may_be_shorter_than_a_millisecond() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    let lease = Lease { duration: Duration::from_nanos(1), unknown_ttl: Duration::from_secs(1) };
    store.reserve(idempotent_runtime::store::Reserve { lease, ..request(&k, owner) }).await.unwrap();
    assert!(store.load(&k).await.unwrap().unwrap().state.is_abandoned());
    assert_eq!(
        store.complete(&k, owner, &completed("x"), Duration::from_micros(300)).await.unwrap(),
        Write::Applied
    );
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(store.load(&k).await.unwrap(), None);
    assert_eq!(grant(&store, &k, OwnerToken::random()).await.attempt, 1);
}

#[tokio::test]
async fn the_longest_durations_do_not_overflow() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    let lease = Lease { duration: Duration::MAX, unknown_ttl: Duration::MAX };
    store.reserve(idempotent_runtime::store::Reserve { lease, ..request(&k, owner) }).await.unwrap();
    assert_eq!(store.renew(&k, owner, lease).await.unwrap(), Write::Applied);
    assert_eq!(store.complete(&k, owner, &completed("x"), Duration::MAX).await.unwrap(), Write::Applied);
    assert_eq!(held(&store, &k).await.state, State::Settled(completed("x")));
}

#[tokio::test]
async fn exhausted_attempts_keep_their_steps_for_the_one_who_resolves() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let step = Step { name: "capture".into(), state: StepState::Done(Arc::from(*b"42")) };
    store.put_step(&k, owner, &step, Lease { duration: Duration::ZERO, ..LEASE }).await.unwrap();
    let last = OwnerToken::random();
    let request = idempotent_runtime::store::Reserve { max_attempts: 1, ..request(&k, last) };
    store.reserve(request).await.unwrap();
    let record = store.load(&k).await.unwrap().unwrap();
    assert_eq!((&record.state, record.owner), (&State::Settled(Settled::Unknown), OwnerToken::NOBODY));

    let (seen, by_hand) = (record.owner, OwnerToken::random());
    let resolved = store.resolve(&k, seen, by_hand, &Resolution::NotDone).await.unwrap();
    assert_eq!(resolved, Compared::Changed);
    let next = idempotent_runtime::store::Reserve {
        take_over: TakeOver::BetweenSteps,
        max_attempts: 1,
        ..self::request(&k, OwnerToken::random())
    };
    let idempotent_runtime::store::Reserved::Granted(next) = store.reserve(next).await.unwrap() else {
        panic!("the next call continues")
    };
    assert_eq!((next.attempt, next.steps), (1, vec![step]));
}

#[tokio::test]
async fn fences_grow_while_the_clock_stands_still() {
    #[derive(Debug)]
    struct Stopped;
    impl idempotent_runtime::stores::Clock for Stopped {
        fn now(&self) -> Duration {
            Duration::from_secs(1)
        }
    }
    let folder = Folder::new();
    let store = SqliteStore::builder(folder.file()).clock(Stopped).open().await.unwrap();
    let (k, mut last) = (key("1"), 0);
    for _generation in 0..5 {
        let owner = OwnerToken::random();
        let granted = grant(&store, &k, owner).await;
        assert!(granted.fence > last);
        last = granted.fence;
        store.release(&k, owner, Release::Forget).await.unwrap();
    }
}

#[tokio::test]
async fn corrupt_rows_are_reported_and_left_alone() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let sound = key("sound");
    grant(&store, &sound, OwnerToken::random()).await;
    let damages = [
        "state = 'sideways'",
        "owner = x'00'",
        "fingerprint = 'text'",
        "fence = -1",
        "attempt = 'many'",
        "expires_at = 'never'",
        "lease_until = NULL",
        "created_at = x'00'",
        "state = 'completed', result_version = 1, result = NULL",
        "state = 'completed', result_version = 1, result = 'text'",
        "state = 'completed', result_version = 99999999999, result = x'00'",
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        let row = |sql: &str| {
            let columns = "state || quote(owner) || quote(result) || quote(expires_at) || attempt";
            beside(&folder.file())
                .query_row(&format!("{sql} RETURNING {columns}"), [k.as_str()], |row| row.get::<_, String>(0))
                .unwrap()
        };
        let before = row(&format!("UPDATE idempotency SET {damage} WHERE key = ?1"));
        let errors = [
            store.reserve(request(&k, OwnerToken::random())).await.map(drop).unwrap_err(),
            store.complete(&k, owner, &completed("x"), KEEP).await.map(drop).unwrap_err(),
            store.release(&k, owner, Release::Forget).await.map(drop).unwrap_err(),
            store.forget(&k, owner).await.map(drop).unwrap_err(),
            store.load(&k).await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{damage}: {}", words(&error));
        }
        let after = row("UPDATE idempotency SET id = id WHERE key = ?1");
        assert_eq!(before, after, "{damage}");
    }
    let page = store.list(&ListQuery::default()).await.unwrap();
    assert_eq!(page.records.iter().map(|record| &record.key).collect::<Vec<_>>(), [&sound]);
    let stuck = store.list(&ListQuery { stuck: true, ..ListQuery::default() }).await.unwrap();
    assert_eq!(stuck.records, [], "what cannot be read does not keep the rest from being listed");
    let all = beside(&folder.file());
    all.execute("UPDATE idempotency SET expires_at = 1", []).unwrap();
    all.execute("UPDATE idempotency SET fence = 'many' WHERE fence = -1", []).unwrap();
    let count =
        || all.query_row("SELECT count(*) FROM idempotency", [], |row| row.get::<_, isize>(0)).unwrap();
    let before = count();
    let purged = store.purge(100).await.unwrap();
    assert!(purged > 0 && store.purge(100).await.unwrap() == 0);
    assert!(before - count() == isize::try_from(purged).unwrap());
    assert_eq!(store.load(&key("3")).await.unwrap_err().kind(), StoreErrorKind::Unreadable);
}

#[tokio::test]
async fn a_list_goes_by_creation_and_ends() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    for n in 0..25 {
        let (k, owner) = (key(&format!("{:02}", 50 - n)), OwnerToken::random());
        grant(&store, &k, owner).await;
        if n % 5 == 0 {
            store.complete(&k, owner, &Settled::Unknown, KEEP).await.unwrap();
        }
    }
    let mut query = ListQuery { limit: 7, ..ListQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = store.list(&query).await.unwrap();
        assert!(page.records.len() <= 7);
        seen.extend(page.records.into_iter().map(|record| record.key.as_str().to_owned()));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (0..25).map(|n| format!("test/charge/{:02}", 50 - n)).collect();
    assert_eq!(seen, expected);

    let stuck = ListQuery { stuck: true, limit: 5, ..ListQuery::default() };
    let page = store.list(&stuck).await.unwrap();
    assert_eq!((page.records.len(), page.next), (5, None));
    let other = ListQuery { operation: Some("refund".into()), ..ListQuery::default() };
    assert!(store.list(&other).await.unwrap().records.is_empty());
    let unknown = ListQuery {
        operation: Some("charge".into()),
        state: Some(StateName::Unknown),
        ..ListQuery::default()
    };
    assert_eq!(store.list(&unknown).await.unwrap().records.len(), 5);
    let nonsense = ListQuery { after: Some("x".into()), ..ListQuery::default() };
    assert_eq!(store.list(&nonsense).await.unwrap_err().kind(), StoreErrorKind::Refused);
}

#[tokio::test]
async fn a_purge_takes_expired_records_with_their_steps_and_no_others() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let short = Lease { duration: Duration::from_micros(1), unknown_ttl: Duration::ZERO };
    for n in 0..700 {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        let step = Step { name: "one".into(), state: StepState::Begun };
        store.put_step(&k, owner, &step, if n < 600 { short } else { LEASE }).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(store.purge(0).await.unwrap(), 0);
    assert_eq!(store.purge(300).await.unwrap(), 300);
    assert_eq!(store.purge(usize::MAX).await.unwrap(), 300);
    let count = |table: &str| -> i64 {
        beside(&folder.file())
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!((count("idempotency"), count("idempotency_steps")), (100, 100));
}

#[tokio::test]
async fn a_clock_that_is_set_moves_leases_and_lets_nobody_write_who_may_not() {
    const HOUR: Duration = Duration::from_secs(3600);
    let folder = Folder::new();
    let clock = ManualClock::default();
    clock.advance(HOUR * 24);
    let store = SqliteStore::builder(folder.file()).clock(clock.clone()).open().await.unwrap();
    let (a, b, c) = (OwnerToken::random(), OwnerToken::random(), OwnerToken::random());
    let first = grant(&store, &key("1"), a).await;
    clock.set_back(HOUR);
    assert_eq!(held(&store, &key("1")).await.owner, a, "the lease is an hour longer now, and holds");
    let released = grant(&store, &key("2"), b).await;
    assert!(released.fence > first.fence);
    store.release(&key("2"), b, Release::Forget).await.unwrap();
    clock.set_back(HOUR);
    assert!(grant(&store, &key("2"), c).await.fence > released.fence, "across generations too");
    let listed = store.list(&ListQuery::default()).await.unwrap().records;
    assert_eq!(listed.iter().map(|record| &record.key).collect::<Vec<_>>(), [&key("1"), &key("2")]);
    // Far ahead: every lease is over, and whoever takes over shuts the others out.
    clock.advance(HOUR * 3);
    let next = grant(&store, &key("1"), b).await;
    assert!((next.attempt, next.fence > first.fence) == (2, true));
    clock.set_back(HOUR * 3);
    assert_eq!(store.complete(&key("1"), a, &completed("stale"), KEEP).await.unwrap(), Write::Lost);
    assert_eq!(store.complete(&key("1"), b, &completed("x"), KEEP).await.unwrap(), Write::Applied);
    assert_eq!(held(&store, &key("1")).await.state, State::Settled(completed("x")));
}
