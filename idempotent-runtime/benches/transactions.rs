//! Calls in a transaction against the same transaction without one, on the same pool.
//!
//! `IDEMPOTENT_BENCH_POSTGRES` names a database to work in; its tables called `bench_…` are dropped. The server has to
//! wait for its disk (`fsync = on`, `synchronous_commit = on`), or the figures say little.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops where something is wrong"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Error, Idempotency};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgConnection, PgPool};

const CALLERS: u32 = 16;
const EACH: u32 = 100;
const ROUNDS: usize = 9;

static NEXT: AtomicU64 = AtomicU64::new(0);

fn next() -> String {
    format!("order-{:020}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Two statements: a posting and a balance.
async fn transfer(tx: &mut PgConnection, id: &str, account: u32) -> u64 {
    sqlx::query("INSERT INTO bench_postings VALUES ($1, $2)")
        .bind(id)
        .bind(250_i64)
        .execute(&mut *tx)
        .await
        .unwrap();
    let update = "UPDATE bench_accounts SET cents = cents - 250 WHERE id = $1";
    sqlx::query(update).bind(i64::from(account)).execute(tx).await.unwrap();
    4711
}

async fn bare(pool: PgPool, account: u32) {
    let mut tx = pool.begin().await.unwrap();
    transfer(&mut tx, &next(), account).await;
    tx.commit().await.unwrap();
}

async fn idempotent(pool: PgPool, idempotency: Idempotency, account: u32) {
    let id = next();
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("transfer").key(&id).fingerprint(&250);
    let done = call.run_in(&mut *tx, async |tx, _| Ok::<_, Error>(transfer(tx, &id, account).await));
    done.await.unwrap();
    tx.commit().await.unwrap();
}

/// Transactions a second.
async fn rate<F: Future<Output = ()> + Send + 'static>(
    call: impl Fn(u32) -> F + Clone + Send + 'static,
) -> f64 {
    let started = Instant::now();
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    call(caller).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    f64::from(CALLERS * EACH) / started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let Ok(url) = std::env::var("IDEMPOTENT_BENCH_POSTGRES") else {
        println!("set IDEMPOTENT_BENCH_POSTGRES to the URL of a database for benchmarks");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = PgPoolOptions::new()
            .max_connections(CALLERS)
            .test_before_acquire(false)
            .connect(&url)
            .await
            .unwrap();
        pool.execute(
            "DROP TABLE IF EXISTS bench_records, bench_postings, bench_accounts; \
             CREATE TABLE bench_postings (id text PRIMARY KEY, cents bigint); \
             CREATE TABLE bench_accounts (id bigint PRIMARY KEY, cents bigint); \
             INSERT INTO bench_accounts SELECT n, 0 FROM generate_series(0, 15) AS n",
        )
        .await
        .unwrap();
        let store = PostgresStore::builder(pool.clone()).table("bench_records").open().await.unwrap();
        let idempotency = Idempotency::new(store);
        let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let without = rate({
                let pool = pool.clone();
                move |account| bare(pool.clone(), account)
            });
            let without = without.await;
            let with = rate({
                let (pool, idempotency) = (pool.clone(), idempotency.clone());
                move |account| idempotent(pool.clone(), idempotency.clone(), account)
            });
            let with = with.await;
            // The first round warms up.
            if round > 0 {
                ratios.push(with / without);
                ours.push(with);
                theirs.push(without);
            }
        }
        println!(
            "transactional calls, {CALLERS} callers: {:.2}x ({:.0}/s against {:.0}/s)",
            median(ratios),
            median(ours),
            median(theirs)
        );
    });
}
