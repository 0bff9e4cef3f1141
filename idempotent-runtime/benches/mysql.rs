//! The MySQL store against bare statements on the same pool.
//!
//! `IDEMPOTENT_BENCH_MYSQL` names a database to work in; its tables called `bench_…` are dropped. The server has to wait
//! for its disk (`innodb_flush_log_at_trx_commit = 1`), or the figures of first calls say little.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "a benchmark stops where something is wrong"
)]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Lease, OwnerToken, Reserve, Reserved, Settled, Store, Stored, TakeOver, Write,
};
use idempotent_runtime::stores::MySqlStore;
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};

const LEASE: Lease = Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const ROUNDS: usize = 7;

static NEXT: AtomicU64 = AtomicU64::new(0);

fn next() -> String {
    format!("shop/charge/{:032x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn result() -> Settled {
    Settled::Completed(Stored { version: 1, bytes: Arc::from([b'r'; 200].as_slice()) })
}

async fn reserve(store: &MySqlStore, key: &RecordKey) -> (OwnerToken, Reserved) {
    let owner = OwnerToken::random();
    let request = Reserve {
        key,
        owner,
        fingerprint: Fingerprint::from_parts(1, [7; 32]),
        lease: LEASE,
        take_over: TakeOver::BetweenSteps,
        max_attempts: 10,
    };
    (owner, store.reserve(request).await.unwrap())
}

async fn first_call(store: MySqlStore) {
    let key = RecordKey::new("charge", next());
    let (owner, reserved) = reserve(&store, &key).await;
    assert!(matches!(reserved, Reserved::Granted(_)));
    assert_eq!(store.complete(&key, owner, &result(), DAY).await.unwrap(), Write::Applied);
}

async fn bare_call(pool: MySqlPool) {
    let (key, owner) = (next(), [7_u8; 16]);
    insert(&pool, &key, "running").await;
    let update = "UPDATE bench_bare SET state = 'completed', result = ? WHERE `key` = ? AND owner = ?";
    let update = sqlx::query(update).bind(&[b'r'; 200][..]).bind(key.as_bytes()).bind(&owner[..]);
    assert_eq!(update.execute(&pool).await.unwrap().rows_affected(), 1);
}

async fn insert(pool: &MySqlPool, key: &str, state: &str) {
    let insert = "INSERT INTO bench_bare (`key`, owner, fingerprint, state, expires_at, result) \
                  VALUES (?, ?, ?, ?, 1, ?)";
    let insert =
        sqlx::query(insert).bind(key.as_bytes()).bind(&[7_u8; 16][..]).bind(&[7_u8; 32][..]).bind(state);
    let result = (state == "completed").then_some(&[b'r'; 200][..]);
    insert.bind(result).execute(pool).await.unwrap();
}

/// Calls a second, of so many callers that make so many calls each.
async fn rate<F: Future<Output = ()> + Send + 'static>(
    callers: usize,
    each: usize,
    call: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> f64 {
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    call().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    (callers * each) as f64 / started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Takes turns, and prints the middle of the ratios.
macro_rules! compare {
    ($name:expr, $ours:expr, $theirs:expr) => {{
        let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let (one, other) = ($ours.await, $theirs.await);
            if round > 0 {
                ratios.push(one / other);
                ours.push(one);
                theirs.push(other);
            }
        }
        println!("{}: {:.2}x ({:.0}/s against {:.0}/s)", $name, median(ratios), median(ours), median(theirs));
    }};
}

async fn measure(url: &str) {
    let options = MySqlPoolOptions::new().max_connections(32).min_connections(32).test_before_acquire(false);
    let pool = options.connect(url).await.unwrap();
    sqlx::raw_sql(
        "DROP TABLE IF EXISTS bench_calls, bench_bare; CREATE TABLE bench_bare (`key` VARBINARY(255) PRIMARY KEY, \
         owner BINARY(16) NOT NULL, fingerprint BINARY(32) NOT NULL, state VARCHAR(16) NOT NULL, result LONGBLOB, \
         expires_at BIGINT NOT NULL)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let store = MySqlStore::builder(pool.clone()).table("bench_calls").open().await.unwrap();

    for (callers, each) in [(1, 200), (32, 60)] {
        let (ours, theirs) = (store.clone(), pool.clone());
        compare!(
            format!("first call, {callers} callers, against an INSERT and an UPDATE"),
            rate(callers, each, {
                let ours = ours.clone();
                move || first_call(ours.clone())
            }),
            rate(callers, each, {
                let theirs = theirs.clone();
                move || bare_call(theirs.clone())
            })
        );
    }

    let mut keys = Vec::new();
    for _ in 0..64 {
        let key = RecordKey::new("charge", next());
        let (owner, _) = reserve(&store, &key).await;
        store.complete(&key, owner, &result(), DAY).await.unwrap();
        insert(&pool, key.as_str(), "completed").await;
        keys.push(key);
    }
    let keys: Arc<[RecordKey]> = keys.into();
    let turn = Arc::new(AtomicU64::new(0));
    let pick =
        move || keys[usize::try_from(turn.fetch_add(1, Ordering::Relaxed)).unwrap() % keys.len()].clone();
    let replay = {
        let (store, pick) = (store.clone(), pick.clone());
        move || {
            let (store, key) = (store.clone(), pick());
            async move { assert!(matches!(reserve(&store, &key).await.1, Reserved::Held(_))) }
        }
    };
    let select = {
        let pool = pool.clone();
        move || {
            let (pool, key) = (pool.clone(), pick());
            async move {
                let select = "SELECT owner, fingerprint, state, result FROM bench_bare WHERE `key` = ?";
                let row: (Vec<u8>, Vec<u8>, String, Option<Vec<u8>>) =
                    sqlx::query_as(select).bind(key.as_str().as_bytes()).fetch_one(&pool).await.unwrap();
                assert_eq!(row.2, "completed");
            }
        }
    };
    for (callers, each) in [(1, 1000), (32, 200)] {
        compare!(
            format!("replay, {callers} callers, against a SELECT by primary key"),
            rate(callers, each, replay.clone()),
            rate(callers, each, select.clone())
        );
    }
}

fn main() {
    let Ok(url) = std::env::var("IDEMPOTENT_BENCH_MYSQL") else {
        println!("mysql: skipped, since IDEMPOTENT_BENCH_MYSQL names no database");
        return;
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(measure(&url));
}
