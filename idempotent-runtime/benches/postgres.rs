//! The PostgreSQL store against bare statements on the same pool.
//!
//! `IDEMPOTENT_BENCH_POSTGRES` names a database to work in; its tables called `bench_…` are dropped. The server has to
//! wait for its disk (`fsync = on`, `synchronous_commit = on`), or the figures say little.
//!
//! Arguments choose what is measured: `first`, `replay`, `batch`, `bloat`; without one all but the last, which makes a
//! million calls.

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
use idempotent_runtime::stores::PostgresStore;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};

const LEASE: Lease = Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(3600) };
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const ROUNDS: usize = 9;

static NEXT: AtomicU64 = AtomicU64::new(0);

fn next() -> String {
    format!("shop/charge/{:032x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn result() -> Settled {
    Settled::Completed(Stored { version: 1, bytes: Arc::from([b'r'; 200].as_slice()) })
}

async fn reserve(store: &PostgresStore, key: &RecordKey, owner: OwnerToken) -> Reserved {
    let request = Reserve {
        key,
        owner,
        fingerprint: Fingerprint::from_parts(1, [7; 32]),
        lease: LEASE,
        take_over: TakeOver::BetweenSteps,
        max_attempts: 10,
    };
    store.reserve(request).await.unwrap()
}

async fn first_call(store: PostgresStore) {
    let (key, owner) = (RecordKey::new("charge", next()), OwnerToken::random());
    assert!(matches!(reserve(&store, &key, owner).await, Reserved::Granted(_)));
    assert_eq!(store.complete(&key, owner, &result(), DAY).await.unwrap(), Write::Applied);
}

async fn bare_call(pool: PgPool) {
    let (key, owner) = (next(), [7_u8; 16]);
    let insert = "INSERT INTO bench_bare (key, owner, fingerprint, state, expires_at) \
         VALUES ($1, $2, $3, 'running', now() + interval '24 hours') ON CONFLICT DO NOTHING RETURNING state";
    let (_state,): (String,) = sqlx::query_as(insert)
        .bind(&key)
        .bind(&owner[..])
        .bind(&[7_u8; 32][..])
        .fetch_one(&pool)
        .await
        .unwrap();
    let update = "UPDATE bench_bare SET state = 'completed', result = $3 WHERE key = $1 AND owner = $2";
    sqlx::query(update).bind(&key).bind(&owner[..]).bind(&[b'r'; 200][..]).execute(&pool).await.unwrap();
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

/// Takes turns, and prints the middle of the ratios.
macro_rules! compare {
    ($name:literal, $ours:expr, $theirs:expr) => {{
        let mut ratios = Vec::new();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn pool(url: &str, connections: u32) -> PgPool {
    let options = PgPoolOptions::new().max_connections(connections).min_connections(connections);
    options.test_before_acquire(false).connect(url).await.unwrap()
}

async fn run(pool: &PgPool, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.unwrap();
}

async fn int(pool: &PgPool, question: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(question)).fetch_one(pool).await.unwrap()
}

async fn replays(pool: &PgPool, store: &PostgresStore) {
    let mut keys = Vec::new();
    for _ in 0..64 {
        let (key, owner) = (RecordKey::new("charge", next()), OwnerToken::random());
        reserve(store, &key, owner).await;
        store.complete(&key, owner, &result(), DAY).await.unwrap();
        let bare = "INSERT INTO bench_bare VALUES ($1, $2, $3, 'completed', $4, now() + interval '24 hours')";
        let bare = sqlx::query(bare).bind(key.as_str()).bind(&[7_u8; 16][..]).bind(&[7_u8; 32][..]);
        bare.bind(&[b'r'; 200][..]).execute(pool).await.unwrap();
        keys.push(key);
    }
    let keys: Arc<[RecordKey]> = keys.into();
    let turn = Arc::new(AtomicU64::new(0));
    let pick = move |keys: &Arc<[RecordKey]>| {
        keys[usize::try_from(turn.fetch_add(1, Ordering::Relaxed)).unwrap() % keys.len()].clone()
    };
    let replay = {
        let (store, keys, pick) = (store.clone(), Arc::clone(&keys), pick.clone());
        move || {
            let (store, key) = (store.clone(), pick(&keys));
            async move {
                assert!(matches!(reserve(&store, &key, OwnerToken::random()).await, Reserved::Held(_)));
            }
        }
    };
    let select = {
        let (pool, keys) = (pool.clone(), keys);
        move || {
            let (pool, key) = (pool.clone(), pick(&keys));
            async move {
                let select = "SELECT owner, fingerprint, state, result FROM bench_bare WHERE key = $1";
                let row: (Vec<u8>, Vec<u8>, String, Option<Vec<u8>>) =
                    sqlx::query_as(select).bind(key.as_str()).fetch_one(&pool).await.unwrap();
                assert_eq!(row.2, "completed");
            }
        }
    };
    for (callers, each) in [(1, 2000), (32, 250)] {
        println!("replays, {callers} callers:");
        compare!(
            "  replay against a SELECT by primary key",
            rate(callers, each, replay.clone()),
            rate(callers, each, select.clone())
        );
    }
}

async fn size(pool: &PgPool, table: &str) -> i64 {
    int(pool, &format!("SELECT pg_total_relation_size('{table}')")).await
}

/// `IDEMPOTENT_BENCH_FILL`, or what the store itself takes.
fn fill() -> u8 {
    std::env::var("IDEMPOTENT_BENCH_FILL").map_or(50, |fill| fill.parse().unwrap())
}

async fn bloat(url: &str) {
    let pool = pool(url, 4).await;
    run(&pool, "DROP TABLE IF EXISTS bench_bloat").await;
    let store = PostgresStore::builder(pool.clone())
        .table("bench_bloat")
        .batch(64)
        .fill_factor(fill())
        .build()
        .unwrap();
    let day = |name: &'static str| {
        let (pool, store) = (pool.clone(), store.clone());
        async move {
            rate(64, 1_000_000 / 64, move || first_call(store.clone())).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            let grown = size(&pool, "bench_bloat").await;
            run(&pool, "DROP TABLE IF EXISTS bench_packed; CREATE TABLE bench_packed (LIKE bench_bloat INCLUDING ALL); \
                 INSERT INTO bench_packed SELECT * FROM bench_bloat WHERE expires_at > now()").await;
            let packed = size(&pool, "bench_packed").await;
            let hot: f64 = sqlx::query_scalar(
                "SELECT n_tup_hot_upd::float8 / n_tup_upd FROM pg_stat_user_tables WHERE relname = 'bench_bloat'",
            ).fetch_one(&pool).await.unwrap();
            println!(
                "{name}: {:.2}x of a table with the same records and nothing else ({} MB against {} MB), {:.1} % of \
                 the updates heap-only",
                grown as f64 / packed as f64,
                grown >> 20,
                packed >> 20,
                hot * 100.0
            );
        }
    };
    day("1,000,000 calls").await;
    run(&pool, "UPDATE bench_bloat SET expires_at = now() - interval '1 second'").await;
    run(&pool, "VACUUM bench_bloat").await;
    let mut purged = 0;
    while let n @ 1.. = store.purge(100_000).await.unwrap() {
        purged += n;
    }
    println!("purged {purged}");
    run(&pool, "VACUUM bench_bloat").await;
    day("1,000,000 more after all of them expired").await;
}

async fn measure(url: &str, what: &[String]) {
    let chosen = |name: &str| what.iter().any(|what| what == name) || (what.is_empty() && name != "bloat");
    let pool32 = pool(url, 32).await;
    run(&pool32, "DROP TABLE IF EXISTS bench_calls, bench_bare, bench_batch; CREATE TABLE bench_bare (key text PRIMARY \
         KEY, owner bytea NOT NULL, fingerprint bytea NOT NULL, state text NOT NULL, result bytea, expires_at timestamptz \
         NOT NULL) WITH (fillfactor = 50)").await;
    let store = PostgresStore::builder(pool32.clone()).table("bench_calls").open().await.unwrap();
    let sync: String = sqlx::query_scalar(
        "SELECT current_setting('synchronous_commit') || ', fsync ' || \
         current_setting('fsync')",
    )
    .fetch_one(&pool32)
    .await
    .unwrap();
    println!("synchronous_commit {sync}");
    if chosen("first") {
        for (callers, each) in [(1, 200), (32, 60)] {
            println!("first calls, {callers} callers:");
            compare!(
                "  first call against two bare statements",
                rate(callers, each, {
                    let store = store.clone();
                    move || first_call(store.clone())
                }),
                rate(callers, each, {
                    let pool = pool32.clone();
                    move || bare_call(pool.clone())
                })
            );
        }
    }
    if chosen("replay") {
        replays(&pool32, &store).await;
    }
    if chosen("batch") {
        // With the connections that sqlx gives a pool by default, and with many: those commit together as well.
        for connections in [10, 32] {
            let pool = pool(url, connections).await;
            let single = PostgresStore::builder(pool.clone()).table("bench_calls").build().unwrap();
            let joined = PostgresStore::builder(pool).table("bench_batch").batch(64).build().unwrap();
            println!("first calls, 64 callers, {connections} connections:");
            let (single, joined) = (move || first_call(single.clone()), move || first_call(joined.clone()));
            compare!("  joined against single", rate(64, 60, joined.clone()), rate(64, 60, single.clone()));
        }
    }
    if chosen("bloat") {
        bloat(url).await;
    }
}

fn main() {
    let Ok(url) = std::env::var("IDEMPOTENT_BENCH_POSTGRES") else {
        println!(
            "IDEMPOTENT_BENCH_POSTGRES has to name a database, for example postgres://postgres@127.0.0.1/bench"
        );
        return;
    };
    let what: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(&url, &what));
}
