//! Calls that are dropped at any moment, on connections that others use after them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, idempotent};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres, Transaction};
use tests::servers::postgres::shared;

/// A pool with one connection, so that whoever comes next gets what was left.
fn only_connection(url: &str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(30))
        .connect_lazy(url)
        .unwrap()
}

/// Polls a call so many times, each when it is woken, and drops it. Whether it came to its end before.
async fn drop_after<T>(polls: usize, call: impl Future<Output = T>) -> bool {
    let (mut call, mut left) = (pin!(call), polls);
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        call.as_mut().poll(cx).map(|_| true)
    })
    .await
}

/// Nobody who borrows the connection works in the transaction of somebody who went away.
async fn assert_no_transaction(pool: &PgPool, case: &str) {
    sqlx::query("SELECT 1").execute(pool).await.unwrap();
    let depth =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'";
    let mut beside = shared().psql(pool.connect_options().get_database().unwrap(), depth);
    for _ in 0..100 {
        if beside == "0" {
            return;
        }
        // The statement that ends it may be under way.
        tokio::time::sleep(Duration::from_millis(20)).await;
        beside = shared().psql(pool.connect_options().get_database().unwrap(), depth);
    }
    panic!("{case}: a transaction is open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_at_any_moment_leaves_no_transaction_and_no_lock() {
    let pool = only_connection(&shared().database());
    let store = PostgresStore::builder(pool.clone()).open().await.unwrap();
    let idempotency = Idempotency::new(store);
    let operation = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let body = |attempt: Attempt| async move {
        attempt.begin_effects().await?;
        Ok::<_, Error>(attempt.number())
    };
    for polls in 0.. {
        let case = format!("{polls} polls");
        let ended = drop_after(polls, operation.key(&polls).run(body)).await;
        idempotency.shutdown().await;
        assert_no_transaction(&pool, &case).await;
        assert!(operation.key(&polls).run(body).await.is_ok(), "{case}");
        if ended {
            assert!(polls > 1, "a call waits several times");
            break;
        }
    }
}

#[idempotent(key = "id", name = "transfer", transaction = tx)]
async fn transfer(tx: &mut Transaction<'_, Postgres>, id: usize) -> Result<u64, Failure> {
    let insert = sqlx::query("INSERT INTO postings VALUES ($1)").bind(i64::try_from(id).unwrap());
    Ok(insert.execute(&mut **tx).await.map_err(Failure::Database)?.rows_affected())
}

#[derive(Debug)]
enum Failure {
    Database(sqlx::Error),
    Library(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Library(error) => Some(error),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_that_is_dropped_at_any_moment_leaves_no_transaction_and_no_lock() {
    let url = shared().database();
    let (pool, others) = (only_connection(&url), PgPool::connect_lazy(&url).unwrap());
    sqlx::query("CREATE TABLE postings (id bigint)").execute(&pool).await.unwrap();
    let idempotency = Idempotency::new(PostgresStore::builder(others.clone()).open().await.unwrap());
    // Several times, because it is not always the same poll that finds an answer there.
    for round in 0..3 {
        for polls in 0.. {
            let (case, id) = (format!("{polls} polls"), 1000 * round + polls);
            let whole = || idempotency.transaction(&pool, |tx| Box::pin(transfer(tx, id)));
            let ended = drop_after(polls, whole()).await;
            assert_no_transaction(&pool, &case).await;
            assert_eq!(whole().await.unwrap(), 1, "{case}");
            let written = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM postings WHERE id = $1");
            let written = written.bind(i64::try_from(id).unwrap()).fetch_one(&others).await.unwrap();
            assert_eq!(written, 1, "{case}");
            if ended {
                assert!(polls > 1, "a transaction waits several times");
                break;
            }
        }
    }
}
