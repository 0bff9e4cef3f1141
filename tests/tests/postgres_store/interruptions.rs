//! Calls that are dropped at any moment, on connections that others use after them, and a commit whose answer is lost.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, idempotent};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres, Transaction};
use tests::servers::postgres::shared;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
    let mut most = 0;
    // Several times, because it is not always the same poll that finds an answer there.
    for round in 0..5 {
        for polls in 0.. {
            let (case, id) = (format!("{polls} polls"), 1000 * round + polls);
            let ended = drop_after(polls, operation.key(&id).run(body)).await;
            idempotency.shutdown().await;
            assert_no_transaction(&pool, &case).await;
            assert!(operation.key(&id).run(body).await.is_ok(), "{case}");
            if ended {
                most = most.max(polls);
                break;
            }
        }
    }
    assert!(most > 1, "a call waits several times");
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
    let mut most = 0;
    for round in 0..5 {
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
                most = most.max(polls);
                break;
            }
        }
    }
    assert!(most > 1, "a transaction waits several times");
}

/// What is lost of the first `COMMIT` that comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Request,
    Answer,
}

/// A way to the server on which one commit meets with an accident: its connection is cut. Where it begins.
async fn accident(lost: Lost) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let happened = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", shared().port())).await.unwrap();
            tokio::spawn(pass_on(client, server, lost, Arc::clone(&happened)));
        }
    });
    port
}

/// Passes on what both say, until one of them ends, or the accident happens.
async fn pass_on(mut client: TcpStream, mut server: TcpStream, lost: Lost, happened: Arc<AtomicBool>) {
    let (mut said, mut answered) = ([0; 8192], [0; 8192]);
    loop {
        tokio::select! {
            read = client.read(&mut said) => {
                let Some(said) = read.ok().and_then(|read| said.get(..read)).filter(|said| !said.is_empty()) else { return };
                let commits = said.windows(6).any(|word| word == b"COMMIT");
                let now = commits && !happened.swap(true, Ordering::SeqCst);
                if now && lost == Lost::Request {
                    return;
                }
                if server.write_all(said).await.is_err() {
                    return;
                }
                if now {
                    // It has arrived, and nobody hears of it.
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Some(answered) = read.ok().and_then(|read| answered.get(..read)).filter(|said| !said.is_empty()) else { return };
                if client.write_all(answered).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_commit_does_nothing_twice() {
    for lost in [Lost::Request, Lost::Answer] {
        let url = shared().database();
        let direct = PgPool::connect_lazy(&url).unwrap();
        sqlx::query("CREATE TABLE postings (id bigint)").execute(&direct).await.unwrap();
        let idempotency = Idempotency::new(PostgresStore::builder(direct.clone()).open().await.unwrap());
        let ways = url.replace(&format!(":{}/", shared().port()), &format!(":{}/", accident(lost).await));
        assert_ne!(ways, url);
        let pool = only_connection(&ways);
        let tries = AtomicU32::new(0);
        let whole = idempotency.transaction(&pool, |tx| {
            tries.fetch_add(1, Ordering::SeqCst);
            Box::pin(transfer(tx, 1))
        });
        assert_eq!(whole.await.unwrap(), 1, "{lost:?}");
        assert_eq!(tries.into_inner(), 2, "{lost:?}: the accident happened");
        let written = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM postings");
        assert_eq!(written.fetch_one(&direct).await.unwrap(), 1, "{lost:?}");
    }
}
