//! What the table holds.

use std::time::{Duration, Instant};

use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, PutStep, Release, Reserve, Resolution, Settled, State, StateName,
    Step, StepState, Store, StoreErrorKind, Stored, TakeOver, Write,
};
use idempotent_runtime::stores::MySqlStore;
use sqlx::mysql::MySqlPool;

use crate::support::*;

#[tokio::test]
async fn a_lease_and_a_ttl_may_be_shorter_than_a_millisecond() {
    let store = store("short").await;
    let (k, owner) = (key("1"), OwnerToken::random());
    let lease = Lease { duration: Duration::from_nanos(1), unknown_ttl: Duration::from_secs(1) };
    store.reserve(Reserve { lease, ..request(&k, owner) }).await.unwrap();
    assert!(store.load(&k).await.unwrap().unwrap().state.is_abandoned());
    let keep = Duration::from_micros(300);
    assert_eq!(store.complete(&k, owner, &completed("x"), keep).await.unwrap(), Write::Applied);
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(store.load(&k).await.unwrap(), None);
    assert_eq!(grant(&store, &k, OwnerToken::random()).await.attempt, 1);
}

#[tokio::test]
async fn the_longest_durations_do_not_overflow() {
    let store = store("longest").await;
    let (k, owner) = (key("1"), OwnerToken::random());
    let lease = Lease { duration: Duration::MAX, unknown_ttl: Duration::MAX };
    store.reserve(Reserve { lease, ..request(&k, owner) }).await.unwrap();
    assert_eq!(store.renew(&k, owner, lease).await.unwrap(), Write::Applied);
    assert_eq!(store.complete(&k, owner, &completed("x"), Duration::MAX).await.unwrap(), Write::Applied);
    assert_eq!(held(&store, &k).await.state, State::Settled(completed("x")));
}

#[tokio::test]
async fn keys_that_a_collation_would_fold_are_different() {
    let store = store("keys").await;
    for text in ["a", "A", "a ", "ä", "a\0", "ａ", &"k".repeat(200)] {
        assert_eq!(grant(&store, &key(text), OwnerToken::random()).await.attempt, 1, "{text}");
    }
}

#[tokio::test]
async fn results_and_steps_of_any_bytes_and_the_longest_come_back() {
    let store = store("bytes").await;
    let longest = store.max_result_bytes().unwrap();
    for len in [0, 1, 255, 8000, longest] {
        let (k, owner) = (key(&len.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        let bytes: Vec<u8> = (0..=255).cycle().take(len).collect();
        let settled = Settled::Failed(Stored { version: u32::MAX, bytes: bytes.into() });
        let written = store.complete(&k, owner, &settled, KEEP).await;
        assert_eq!(written.unwrap_or_else(|error| panic!("{len}: {}", words(&error))), Write::Applied);
        assert!(held(&store, &k).await.state == State::Settled(settled), "{len} bytes");
    }
    // One that is too long is refused at once, and the record still takes the word that there was one.
    let (k, owner) = (key("too long"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let settled = Settled::Completed(Stored { version: 1, bytes: vec![7; longest + 64 * 1024].into() });
    let error = store.complete(&k, owner, &settled, KEEP).await.unwrap_err();
    assert!(!error.is_transient(), "{}", words(&error));
    assert_eq!(store.complete(&k, owner, &Settled::NotRetained, KEEP).await.unwrap(), Write::Applied);
    let (k, owner) = (key("steps"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let step = |bytes: Vec<u8>| Step { name: "step".into(), state: StepState::Done(bytes.into()) };
    let long = Step { name: "long".into(), ..step(vec![7; longest / 2]) };
    assert_eq!(store.put_step(&k, owner, &long, LEASE).await.unwrap(), PutStep::Stored);
    let too_long = step(vec![8; longest / 2 + 64 * 1024]);
    let error = store.put_step(&k, owner, &too_long, LEASE).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
    assert!(store.load(&k).await.unwrap().unwrap().steps == [long]);
}

#[tokio::test]
async fn exhausted_attempts_keep_their_steps_for_the_one_who_resolves() {
    let store = store("exhausted").await;
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let step = Step { name: "capture".into(), state: StepState::Done(b"42".as_slice().into()) };
    store.put_step(&k, owner, &step, Lease { duration: Duration::ZERO, ..LEASE }).await.unwrap();
    store.reserve(Reserve { max_attempts: 1, ..request(&k, OwnerToken::random()) }).await.unwrap();
    let record = store.load(&k).await.unwrap().unwrap();
    assert_eq!((&record.state, record.owner), (&State::Settled(Settled::Unknown), OwnerToken::NOBODY));
    assert_eq!(record.steps, std::slice::from_ref(&step));

    let by_hand = OwnerToken::random();
    let resolved = store.resolve(&k, record.owner, by_hand, &Resolution::NotDone).await.unwrap();
    assert_eq!(resolved, Compared::Changed);
    let next =
        Reserve { take_over: TakeOver::BetweenSteps, max_attempts: 1, ..request(&k, OwnerToken::random()) };
    let idempotent_runtime::store::Reserved::Granted(next) = store.reserve(next).await.unwrap() else {
        panic!("the next call continues")
    };
    assert_eq!((next.attempt, next.steps), (1, vec![step]));
}

#[tokio::test]
async fn fences_grow_across_generations() {
    let store = store("fences").await;
    let (k, mut last) = (key("1"), 0);
    for _generation in 0..20 {
        let owner = OwnerToken::random();
        let granted = grant(&store, &k, owner).await;
        assert!(granted.fence > last);
        last = granted.fence;
        store.release(&k, owner, Release::Forget).await.unwrap();
    }
}

#[tokio::test]
async fn the_clock_is_looked_at_after_the_lock_was_waited_for() {
    let url = server().database("clock");
    let store = MySqlStore::connect(&url).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM idempotency FOR UPDATE").fetch_all(&mut *transaction).await.unwrap();
    let lease = Lease { duration: Duration::from_secs(1), ..LEASE };
    let renewing = tokio::spawn({
        let (store, k) = (store.clone(), k.clone());
        async move { store.renew(&k, owner, lease).await }
    });
    tokio::time::sleep(Duration::from_millis(600)).await;
    let freed = Instant::now();
    transaction.rollback().await.unwrap();
    assert_eq!(renewing.await.unwrap().unwrap(), Write::Applied);
    let State::Running { lease_left, .. } = store.load(&k).await.unwrap().unwrap().state else { panic!() };
    assert!(lease_left + freed.elapsed() >= Duration::from_secs(1), "{lease_left:?}");
}

#[tokio::test]
async fn corrupt_and_newer_records_are_reported_and_left_alone() {
    let url = server().database("corrupt");
    let store = MySqlStore::connect(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    let sound = key("sound");
    grant(&store, &sound, OwnerToken::random()).await;
    let damages = [
        "version = 2",
        "state = 'sideways'",
        "state = 'sideways', expires_at = 0",
        "lease_until = NULL",
        "state = 'completed', result_version = 1, result = NULL",
        "state = 'failed', result_version = NULL, result = ''",
        "fence = -1, lease_until = 0",
        "steps = x'0001ff'",
        "steps = x'000100000000ff', lease_until = 0",
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        grant(&store, &k, owner).await;
        sqlx::query(sqlx::AssertSqlSafe(format!("UPDATE idempotency SET {damage} WHERE `key` = ?")))
            .bind(k.as_str().as_bytes())
            .execute(&pool)
            .await
            .unwrap();
        let sum = || async {
            let row = "SELECT CONCAT_WS('|', state, HEX(owner), attempt, fence, lease_until, expires_at, version, \
                       HEX(result), HEX(steps)) FROM idempotency WHERE `key` = ?";
            sqlx::query_scalar::<_, String>(row).bind(k.as_str().as_bytes()).fetch_one(&pool).await.unwrap()
        };
        let before = sum().await;
        let mut errors =
            vec![("reserve", store.reserve(request(&k, OwnerToken::random())).await.map(drop).err())];
        if !damage.starts_with("fence") && !damage.starts_with("steps") {
            errors.push(("complete", store.complete(&k, owner, &completed("x"), KEEP).await.map(drop).err()));
            errors.push(("renew", store.renew(&k, owner, LEASE).await.map(drop).err()));
            errors.push(("forget", store.forget(&k, owner).await.map(drop).err()));
        }
        if !damage.starts_with("fence") {
            errors.push(("release", store.release(&k, owner, Release::Forget).await.map(drop).err()));
        }
        if !damage.ends_with("expires_at = 0") {
            errors.push(("load", store.load(&k).await.map(drop).err()));
        }
        for (operation, error) in errors {
            if operation == "release" && damage.contains("00000000ff") {
                continue; // The name of a step that is no text: SQL does not mind.
            }
            let error = error.unwrap_or_else(|| panic!("{operation} on {damage}"));
            assert_eq!(
                error.kind(),
                StoreErrorKind::Unreadable,
                "{operation} on {damage}: {}",
                words(&error)
            );
        }
        if !damage.contains("00000000ff") && !damage.starts_with("fence") {
            assert_eq!(before, sum().await, "{damage}");
        }
    }
    let page =
        store.list(&ListQuery { operation: Some("charge".into()), ..ListQuery::default() }).await.unwrap();
    assert!(page.records.iter().any(|record| record.key == sound));
}

#[tokio::test]
async fn a_list_goes_by_creation_and_ends() {
    let store = store("lists").await;
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
    let unknown = ListQuery {
        operation: Some("charge".into()),
        state: Some(StateName::Unknown),
        stuck: true,
        ..ListQuery::default()
    };
    assert_eq!(store.list(&unknown).await.unwrap().records.len(), 5);
    let nonsense = ListQuery { after: Some("x".into()), ..ListQuery::default() };
    assert_eq!(store.list(&nonsense).await.unwrap_err().kind(), StoreErrorKind::Refused);
}

#[tokio::test]
async fn a_purge_takes_expired_records_and_no_others_in_batches() {
    let store = store("purges").await;
    let short = Lease { duration: Duration::from_micros(1), unknown_ttl: Duration::ZERO };
    for n in 0..700 {
        let lease = if n < 600 { short } else { LEASE };
        let k = key(&n.to_string());
        store.reserve(Reserve { lease, ..request(&k, OwnerToken::random()) }).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(store.purge(0).await.unwrap(), 0);
    assert_eq!(store.purge(300).await.unwrap(), 300);
    assert_eq!(store.purge(usize::MAX).await.unwrap(), 300);
    let left: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM idempotency").fetch_one(store.pool()).await.unwrap();
    assert_eq!(left, 100);
}

/// The time of creation does not tell these apart, and a page may end among them.
#[tokio::test]
async fn records_of_one_moment_are_all_listed_once() {
    let store = store("moments").await;
    for n in 0..10 {
        grant(&store, &key(&n.to_string()), OwnerToken::random()).await;
    }
    sqlx::query("UPDATE idempotency SET created_at = 1767225600123456").execute(store.pool()).await.unwrap();
    for limit in [1, 3, 9] {
        let mut query = ListQuery { limit, ..ListQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = store.list(&query).await.unwrap();
            seen.extend(page.records.into_iter().map(|record| record.key.as_str().to_owned()));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..10).map(|n| format!("test/charge/{n}")).collect::<Vec<_>>(), "{limit} a page");
    }
}
