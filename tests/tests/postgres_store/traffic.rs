//! What a call costs the server: statements, log, and heap-only updates.

use std::time::Duration;

use idempotent_runtime::store::{OwnerToken, Store};
use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Error, Idempotency};
use sqlx::postgres::PgPoolOptions;
use tests::servers::postgres::{Postgres, shared};

use crate::support::*;

/// How many statements on the store's table the server has been sent.
fn statements(url: &str) -> u32 {
    let count = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
         WHERE d.datname = current_database() AND query LIKE '%\"idempotency\"%'";
    shared().psql(url, count).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_takes_as_few_statements_as_can_be() {
    let url = shared().database();
    shared().psql(&url, "CREATE EXTENSION pg_stat_statements");
    let pool =
        PgPoolOptions::new().max_connections(1).test_before_acquire(false).connect(&url).await.unwrap();
    let idempotency = Idempotency::new(PostgresStore::builder(pool).open().await.unwrap());
    let charge = idempotency.operation("charge");
    let mut before = statements(&url);
    let mut since = |what: &str, expected: u32| {
        let now = statements(&url);
        assert_eq!(now - before, expected, "{what}");
        before = now;
    };

    let call = || charge.key("1").fingerprint(&1);
    call().run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    since("the first call", 2);
    call().run(|_| async { Ok::<_, Error>(2) }).await.unwrap();
    since("a replay", 1);
    charge.key("1").fingerprint(&2).run(|_| async { Ok::<_, Error>(2) }).await.unwrap_err();
    since("a mismatch", 1);
    let held = charge.key("2").run(|_| async {
        let busy = charge.key("2").fingerprint(&()).run(|_| async { Ok::<_, Error>(1) });
        let busy = tokio::spawn(busy).await.unwrap();
        assert!(busy.is_err());
        Ok::<_, Error>(1)
    });
    held.await.unwrap();
    since("a call with a duplicate meanwhile", 3);
}

fn log_position(server: &Postgres) -> String {
    server.psql("postgres", "SELECT pg_current_wal_insert_lsn()")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_writes_no_log() {
    // Its own server, since the log is that of all databases.
    let server = Postgres::start(&["-c", "fsync=off", "-c", "autovacuum=off", "-c", "bgwriter_delay=10s"]);
    let store = PostgresStore::builder(pool(&server.url("postgres"))).open().await.unwrap();
    let (settled, running, owner) = (key("settled"), key("running"), OwnerToken::random());
    grant(&store, &settled, owner).await;
    store.complete(&settled, owner, &completed("x"), KEEP).await.unwrap();
    grant(&store, &running, owner).await;
    for k in [&settled, &running] {
        // The first reader may tidy up the page.
        held(&store, k).await;
    }
    // A running-transactions record may come at any time by itself; not in every try.
    for _ in 0..5 {
        let before = log_position(&server);
        for n in 0..100 {
            // Every other time by a store that has not seen the keys before, and knows no better than to try.
            let store = if n % 2 == 0 { store.clone() } else { PostgresStore::new(store.pool().clone()) };
            held(&store, &settled).await;
            held(&store, &running).await;
            store.load(&settled).await.unwrap();
        }
        if log_position(&server) == before {
            return;
        }
    }
    panic!("replays write to the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn completing_is_a_heap_only_update() {
    let url = shared().database();
    let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..250 {
                    let (k, owner) = (key(&format!("{caller}-{n}")), OwnerToken::random());
                    grant(&store, &k, owner).await;
                    store.complete(&k, owner, &completed(&"r".repeat(200)), KEEP).await.unwrap();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let ratio = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'idempotency'";
    for _ in 0..100 {
        let counts = shared().psql(&url, ratio);
        let (updates, heap_only) = counts.split_once('|').unwrap();
        let (updates, heap_only): (u32, u32) = (updates.parse().unwrap(), heap_only.parse().unwrap());
        if updates >= 2000 {
            assert!(heap_only * 100 >= updates * 95, "{heap_only} of {updates}");
            return;
        }
        // The counts come with a delay.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server does not count updates");
}
