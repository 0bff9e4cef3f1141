//! The answer to a COMMIT that never arrives: whoever tries again finds out by the record what became of the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Error, Idempotency, Outcome, with_outcome};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgConnection, PgPool};
use tests::servers::postgres::shared;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a message that commits ends.
const COMMIT: &[u8] = b"COMMIT\0";

/// Where the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Breaks {
    /// The server has never heard of the commit.
    Before,
    /// It has committed, and said so.
    After,
}

/// Breaks the connection of the first COMMIT, and passes on everything else. Gives its port.
async fn proxy(breaks: Breaks, broken: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", shared().port())).await.unwrap();
            tokio::spawn(carry(client, server, breaks, Arc::clone(&broken)));
        }
    });
    port
}

/// Carries bytes both ways until one side ends, or the commit comes. Both connections are closed when it returns.
async fn carry(mut client: TcpStream, mut server: TcpStream, breaks: Breaks, broken: Arc<AtomicBool>) {
    let (mut asked, mut answered) = ([0; 8192], [0; 8192]);
    let mut end = Vec::new();
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                end.extend_from_slice(&asked[..length]);
                end.drain(..end.len().saturating_sub(COMMIT.len()));
                let breaking = end == COMMIT && !broken.swap(true, Ordering::SeqCst);
                if breaking && breaks == Breaks::Before {
                    return;
                }
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
                if breaking {
                    assert!(server.read(&mut answered).await.unwrap() > 0);
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The handle, the database as it is, and the same through a proxy that breaks the first commit.
async fn shop(breaks: Breaks) -> (Idempotency, PgPool, PgPool, Arc<AtomicBool>) {
    let url = shared().database();
    let pool = PgPool::connect(&url).await.unwrap();
    pool.execute("CREATE TABLE postings (id text)").await.unwrap();
    let store = PostgresStore::builder(pool.clone()).open().await.unwrap();
    let broken = Arc::new(AtomicBool::new(false));
    let port = proxy(breaks, Arc::clone(&broken)).await;
    let through = url.replace(&format!(":{}/", shared().port()), &format!(":{port}/"));
    assert_ne!(through, url);
    let broken_pool = PgPoolOptions::new().max_connections(1).connect(&through).await.unwrap();
    (Idempotency::new(store), pool, broken_pool, broken)
}

async fn postings(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM postings").fetch_one(pool).await.unwrap()
}

/// Writes a posting; gives how many bodies have run by then.
async fn charge(idempotency: &Idempotency, tx: &mut PgConnection, runs: &AtomicU32) -> Result<u32, Error> {
    let call = idempotency.operation("charge").key("o-1");
    call.run_in(tx, async |tx, _| {
        sqlx::query("INSERT INTO postings VALUES ('o-1')").execute(tx).await.unwrap();
        Ok(runs.fetch_add(1, Ordering::SeqCst) + 1)
    })
    .await
}

#[tokio::test]
async fn a_retry_by_the_caller_finds_out_what_became_of_the_commit() {
    for (breaks, value, outcome) in
        [(Breaks::After, 1, Outcome::Replayed), (Breaks::Before, 2, Outcome::Executed)]
    {
        let (idempotency, pool, broken_pool, broken) = shop(breaks).await;
        let runs = AtomicU32::new(0);
        let mut tx = broken_pool.begin().await.unwrap();
        assert_eq!(charge(&idempotency, &mut tx, &runs).await.unwrap(), 1);
        assert!(tx.commit().await.is_err(), "{breaks:?}: the answer must be lost");
        assert!(broken.load(Ordering::SeqCst));

        let mut tx = broken_pool.begin().await.unwrap();
        let (answer, how) = with_outcome(charge(&idempotency, &mut tx, &runs)).await;
        assert_eq!((answer.unwrap(), how), (value, Some(outcome)), "{breaks:?}");
        tx.commit().await.unwrap();
        assert_eq!(postings(&pool).await, 1, "{breaks:?}");
    }
}

#[tokio::test]
async fn the_whole_retries_by_itself_and_posts_once() {
    for (breaks, value, outcome) in
        [(Breaks::After, 1, Outcome::Replayed), (Breaks::Before, 2, Outcome::Executed)]
    {
        let (idempotency, pool, broken_pool, broken) = shop(breaks).await;
        let runs = Arc::new(AtomicU32::new(0));
        let (answer, how) = idempotency
            .transaction(&broken_pool, |tx| {
                let (idempotency, runs) = (idempotency.clone(), Arc::clone(&runs));
                Box::pin(async move {
                    let (answer, how) = with_outcome(charge(&idempotency, tx, &runs)).await;
                    Ok::<_, Error>((answer?, how))
                })
            })
            .await
            .unwrap();
        assert!(broken.load(Ordering::SeqCst), "{breaks:?}: the answer must have been lost");
        assert_eq!((answer, how), (value, Some(outcome)), "{breaks:?}");
        assert_eq!(postings(&pool).await, 1, "{breaks:?}");
    }
}
