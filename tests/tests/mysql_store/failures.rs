//! What happens when an answer does not arrive, or its caller does not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{OwnerToken, Release, Reserved, Store, StoreErrorKind, Write};
use idempotent_runtime::stores::MySqlStore;
use idempotent_runtime::testing::{Fault, Faults, Operation};
use idempotent_runtime::{Error, Idempotency};
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};
use tests::Runs;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_tasks_on_one_key_run_one_body() {
    let idempotency = Idempotency::builder().store(store("stampede").await).build().unwrap();
    let runs = Runs::default();
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (idempotency, runs) = (idempotency.clone(), runs.clone());
            let call = idempotency.operation("charge").wait(Duration::from_secs(30)).key("o-1");
            tokio::spawn(call.run(move |_| async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok::<_, Error>(runs.count())
            }))
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), 1);
    }
    assert_eq!(runs.total(), 1);
}

#[tokio::test]
async fn a_lost_reply_is_asked_for_again_and_nothing_runs_twice() {
    for (operation, n) in [(Operation::Reserve, 0), (Operation::Complete, 0), (Operation::Reserve, 1)] {
        let faults = Arc::new(Faults::new(store("replies").await));
        faults.plan_nth(operation, n, Fault::LoseReply);
        let idempotency = Idempotency::builder().store(Arc::clone(&faults)).build().unwrap();
        let runs = Runs::default();
        let name = format!("{operation:?}{n}");
        for _ in 0..3 {
            let runs = runs.clone();
            let call = idempotency.operation("charge").key(&name);
            assert_eq!(call.run(|_| async move { Ok::<_, Error>(runs.count()) }).await.unwrap(), 1);
        }
        assert_eq!(runs.total(), 1, "{name}");
    }
}

/// Connections that the server has cut, as a proxy or a restart does, cost nobody a call.
#[tokio::test]
async fn cut_connections_are_replaced_at_once() {
    let store = store("cut").await;
    let pool = store.pool().clone();
    let busy: Vec<_> = (0..5)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { grant(&store, &key(&n.to_string()), OwnerToken::random()).await })
        })
        .collect();
    for task in busy {
        task.await.unwrap();
    }
    assert!(pool.size() > 1);
    let mine = "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE db = 'cut'";
    let kill = server().sql(mine);
    server().sql(&kill);
    for n in 5..10 {
        grant(&store, &key(&n.to_string()), OwnerToken::random()).await;
    }
}

/// Locks the row of a record, as somebody's own transaction may.
async fn lock(transaction: &mut sqlx::MySqlTransaction<'_>, k: &RecordKey) {
    let select =
        sqlx::query("SELECT 1 FROM idempotency WHERE `key` = ? FOR UPDATE").bind(k.as_str().as_bytes());
    select.fetch_one(&mut **transaction).await.unwrap();
}

/// Whether a transaction is open on a connection that nobody uses, or rows are locked.
fn open_transactions(database: &str) -> String {
    server().sql(&format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist \
         ON id = trx_mysql_thread_id WHERE db = '{database}'"
    ))
}

#[tokio::test]
async fn a_call_that_is_dropped_at_any_moment_leaves_nothing_behind() {
    let database = "dropped";
    let url = server().database(database);
    let pool = MySqlPoolOptions::new().max_connections(2).test_before_acquire(false);
    let pool = pool.connect(&url).await.unwrap();
    let store = MySqlStore::new(pool.clone());
    for n in 0..120_u64 {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        let patience = Duration::from_micros(n * 25);
        let _ = tokio::time::timeout(patience, store.reserve(request(&k, owner))).await;
        let _ = tokio::time::timeout(patience, store.complete(&k, owner, &completed("x"), KEEP)).await;
        // Whatever has become of it: the token is recognised, and the connections work.
        match store.reserve(request(&k, owner)).await.unwrap() {
            Reserved::Granted(grant) => assert_eq!(grant.attempt, 1),
            Reserved::Held(record) => assert_eq!(record.owner, owner),
        }
    }
    assert!(pool.size() <= 2);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(open_transactions(database), "0");
}

#[tokio::test]
async fn a_dropped_call_that_waits_for_a_lock_keeps_neither_the_lock_nor_the_pool() {
    let database = "waiting";
    let url = server().database(database);
    let store = small_store(&url, 2).await;
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let application = MySqlPool::connect(&url).await.unwrap();
    let mut transaction = application.begin().await.unwrap();
    lock(&mut transaction, &k).await;
    for _ in 0..2 {
        let renewing = store.renew(&k, owner, LEASE);
        tokio::time::timeout(Duration::from_millis(100), renewing).await.unwrap_err();
    }
    // Both connections wait with nobody waiting for them; after five seconds the pool is free of them.
    let freed = Instant::now();
    grant(&store, &key("2"), OwnerToken::random()).await;
    assert!(freed.elapsed() < Duration::from_secs(7), "{:?}", freed.elapsed());
    transaction.rollback().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(open_transactions(database), "0");
    assert_eq!(store.release(&k, owner, Release::Forget).await.unwrap(), Write::Applied);
}

#[tokio::test]
async fn a_killed_statement_leaves_no_transaction_to_the_next_caller() {
    let database = "killed";
    let url = server().database(database);
    let store = small_store(&url, 1).await;
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    let application = MySqlPool::connect(&url).await.unwrap();
    let mut transaction = application.begin().await.unwrap();
    lock(&mut transaction, &k).await;
    let renewing = tokio::spawn({
        let (store, k) = (store.clone(), k.clone());
        async move { store.renew(&k, owner, LEASE).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let kill = server().sql(&format!(
        "SELECT CONCAT('KILL QUERY ', id) FROM information_schema.processlist WHERE db = '{database}' AND \
         state LIKE '%atistics%' OR db = '{database}' AND command = 'Execute'"
    ));
    server().sql(&kill);
    assert_eq!(renewing.await.unwrap().unwrap_err().kind(), StoreErrorKind::Unavailable);
    transaction.rollback().await.unwrap();
    assert_eq!(store.renew(&k, owner, LEASE).await.unwrap(), Write::Applied);
    assert_eq!(open_transactions(database), "0");
}

/// Sessions in which nothing commits by itself, and which chain transactions, as some servers are set up.
#[tokio::test]
async fn a_session_without_autocommit_is_left_without_a_transaction() {
    let url = server().database("autocommit");
    let pool = MySqlPoolOptions::new().max_connections(1).after_connect(|connection, _| {
        Box::pin(async move {
            let set = "SET autocommit = 0, completion_type = 'CHAIN', transaction_isolation = 'SERIALIZABLE', \
                       time_zone = '+05:45'";
            sqlx::raw_sql(set.replace("transaction_isolation", "tx_isolation").leak() as &'static str)
                .execute(connection)
                .await
                .map(drop)
        })
    });
    let store = MySqlStore::new(pool.connect(&url).await.unwrap());
    let beside = MySqlStore::connect(&url).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&store, &k, owner).await;
    held(&store, &k).await;
    assert_eq!(beside.complete(&k, owner, &completed("x"), KEEP).await.unwrap(), Write::Applied);
    let record = held(&store, &k).await;
    assert!(record.state.name().as_str() == "completed", "not an old snapshot: {record:?}");
    assert!(store.load(&k).await.unwrap().is_some());
    assert_eq!(open_transactions("autocommit"), "0");
}

#[tokio::test]
async fn many_callers_on_few_keys_collide_without_errors() {
    let store = store("collisions").await;
    let tasks: Vec<_> = (0..16_u32)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for round in 0..60 {
                    let (k, owner) = (key(&((n + round) % 4).to_string()), OwnerToken::random());
                    if let Reserved::Granted(_) = store.reserve(request(&k, owner)).await.unwrap() {
                        store.release(&k, owner, Release::Forget).await.unwrap();
                    }
                    if round % 20 == 0 {
                        store.purge(10).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// The application's own work has all connections: its calls end in time, nothing has run, and no key is lost by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_without_a_free_connection_costs_time_only() {
    let pool = small_pool(&server().database("no_connection"), 1).await;
    let store = MySqlStore::builder(pool.clone()).open().await.unwrap();
    let idempotency = Idempotency::builder()
        .store(store.clone())
        .store_timeout(Duration::from_millis(400))
        .wait(Duration::from_secs(30))
        .build()
        .unwrap();
    let runs = AtomicUsize::new(0);
    let call = async |key: &str| {
        let call = idempotency.operation("charge").key(key);
        call.run(|_| async { Ok::<usize, Error>(runs.fetch_add(1, Ordering::Relaxed)) }).await
    };
    let busy = pool.acquire().await.unwrap();
    for key in ["1", "2", "3"] {
        let error = call(key).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), ("store-unavailable", true), "{error}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    drop(busy);
    // What had been asked for in vain may have been granted since; it is given back, and these wait for that.
    for key in ["1", "2", "3"] {
        call(key).await.unwrap();
    }
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    idempotency.shutdown().await;
}
