//! A transaction begun, committed, and begun again by the library.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::TransactionConnection;
use crate::error::Error;
use crate::idempotency::Idempotency;
use crate::store::{StoreError, StoreErrorKind};

/// How often a transaction is begun in all.
const TRIES: u32 = 10;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

tokio::task_local! {
    /// Whether a call inside has found that only another transaction may succeed.
    static CONTENDED: Arc<AtomicBool>;
}

/// Notes that only another transaction may succeed.
pub(super) fn note_contention() {
    let _ = CONTENDED.try_with(|contended| contended.store(true, Ordering::Relaxed));
}

/// What the closure of [`Idempotency::transaction`] gives: as sqlx's own closures do.
pub type BoxFuture<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

/// A database of sqlx whose transactions calls can be in.
pub trait TransactionDatabase: sqlx::Database + sealed::Sealed {
    #[doc(hidden)]
    const NAME: &'static str;
    #[doc(hidden)]
    fn begin(pool: &sqlx::Pool<Self>)
    -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>>;
    /// Whether another transaction may succeed where this error came.
    #[doc(hidden)]
    fn is_contention(error: &dyn sqlx::error::DatabaseError) -> bool;
}

mod sealed {
    pub trait Sealed {}
}

#[cfg(feature = "postgres")]
impl sealed::Sealed for sqlx::Postgres {}
#[cfg(feature = "postgres")]
impl TransactionDatabase for sqlx::Postgres {
    const NAME: &'static str = "postgres";

    fn begin(
        pool: &sqlx::Pool<Self>,
    ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>> {
        Box::pin(pool.begin())
    }

    fn is_contention(error: &dyn sqlx::error::DatabaseError) -> bool {
        error.code().is_some_and(|code| code == "40001" || code == "40P01")
    }
}

#[cfg(feature = "mysql")]
impl sealed::Sealed for sqlx::MySql {}
#[cfg(feature = "mysql")]
impl TransactionDatabase for sqlx::MySql {
    const NAME: &'static str = "mysql";

    fn begin(
        pool: &sqlx::Pool<Self>,
    ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>> {
        Box::pin(pool.begin())
    }

    /// A deadlock, a wait for a lock that was too long, and a row that changed after the snapshot.
    fn is_contention(error: &dyn sqlx::error::DatabaseError) -> bool {
        let error = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>();
        error.is_some_and(|error| matches!(error.number(), 1213 | 1205 | 1020))
    }
}

#[cfg(feature = "sqlite-transactions")]
impl sealed::Sealed for sqlx::Sqlite {}
#[cfg(feature = "sqlite-transactions")]
impl TransactionDatabase for sqlx::Sqlite {
    const NAME: &'static str = "sqlite";

    /// With the write lock, since a transaction that reads first and writes later fails when somebody has written between.
    fn begin(
        pool: &sqlx::Pool<Self>,
    ) -> BoxFuture<'_, Result<sqlx::Transaction<'static, Self>, sqlx::Error>> {
        Box::pin(pool.begin_with("BEGIN IMMEDIATE"))
    }

    /// `SQLITE_BUSY` and `SQLITE_LOCKED`; what is above the lowest byte says why.
    fn is_contention(error: &dyn sqlx::error::DatabaseError) -> bool {
        let code = error.code().and_then(|code| code.parse::<i32>().ok());
        code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
    }
}

impl Idempotency {
    /// Begins a transaction on a connection of `pool`, runs `body` in it, and commits; all of it again, up to ten times,
    /// when the database says that another try may succeed: after a serialization failure, a deadlock, a busy database.
    ///
    /// Inside, this is the handle of annotated calls. **What counts belongs into an idempotent call**: when the answer to
    /// the commit is lost, `body` is run again, and it is the record of the call that tells whether the first commit had
    /// arrived. What `body` writes outside of such calls would be written twice then.
    ///
    /// ```no_run
    /// # #[cfg(feature = "postgres")] mod hidden {
    /// # use idempotent_runtime::{Error, Idempotency, idempotent};
    /// #[idempotent(key = "id", transaction = tx)]
    /// async fn transfer(tx: &mut sqlx::PgConnection, id: u64, cents: i64) -> Result<(), Error> {
    ///     sqlx::query("UPDATE accounts SET cents = cents - $1 WHERE id = 1").bind(cents).execute(tx).await.unwrap();
    ///     Ok(())
    /// }
    ///
    /// # async fn example(idempotency: Idempotency, pool: sqlx::PgPool) -> Result<(), Error> {
    /// idempotency.transaction(&pool, |tx| Box::pin(transfer(tx, 4711, 250))).await
    /// # }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body`, after a rollback. A database's own error is found in them through
    /// [`source`](StdError::source). [`Error::Store`] when there is no connection, or the commit fails.
    pub async fn transaction<D, T, E, F>(&self, pool: &sqlx::Pool<D>, mut body: F) -> Result<T, E>
    where
        D: TransactionDatabase,
        sqlx::Transaction<'static, D>: TransactionConnection,
        E: From<Error> + StdError + 'static,
        F: for<'c> FnMut(&'c mut sqlx::Transaction<'static, D>) -> BoxFuture<'c, Result<T, E>>,
    {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            let contended = Arc::new(AtomicBool::new(false));
            let answer = CONTENDED.scope(Arc::clone(&contended), self.within(once(pool, &mut body))).await;
            let error = match answer {
                Ok(value) => return Ok(value),
                Err(Failed::Commit { error, lost }) if lost || is_contention::<D>(&error) => {
                    store_error::<D>(error).into()
                }
                Err(Failed::Begin(error)) if is_contention::<D>(&error) => store_error::<D>(error).into(),
                Err(Failed::Commit { error, .. } | Failed::Begin(error)) => {
                    return Err(store_error::<D>(error).into());
                }
                Err(Failed::Body(error))
                    if contended.load(Ordering::Relaxed) || is_contention::<D>(&error) =>
                {
                    error
                }
                Err(Failed::Body(error)) => return Err(error),
            };
            if tries == TRIES {
                return Err(error);
            }
            tries += 1;
            tokio::time::sleep(pause.mul_f64(rand::random_range(0.0..1.0))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

enum Failed<E> {
    Begin(sqlx::Error),
    Body(E),
    /// `lost`: nobody knows whether it was committed.
    Commit {
        error: sqlx::Error,
        lost: bool,
    },
}

/// One transaction. A body that fails leaves its rollback to the connection, which does it before anything else.
async fn once<D, T, E, F>(pool: &sqlx::Pool<D>, body: &mut F) -> Result<T, Failed<E>>
where
    D: TransactionDatabase,
    F: for<'c> FnMut(&'c mut sqlx::Transaction<'static, D>) -> BoxFuture<'c, Result<T, E>>,
{
    let mut transaction = begin(pool).await.map_err(Failed::Begin)?;
    match body(&mut transaction).await {
        Ok(value) => {
            let committed = transaction.commit().await;
            committed.map(|()| value).map_err(|error| {
                let lost = matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_));
                Failed::Commit { error, lost }
            })
        }
        Err(error) => {
            // What fails here is lost with the connection.
            let _ = transaction.rollback().await;
            Err(Failed::Body(error))
        }
    }
}

/// Begins on a task of its own. A `BEGIN` that is dropped while it is under way would leave its connection in the pool inside
/// a transaction that sqlx 0.9.0 knows nothing of, and whoever borrows it next would work in it. One that comes to its end and
/// finds nobody is rolled back.
async fn begin<D: TransactionDatabase>(
    pool: &sqlx::Pool<D>,
) -> Result<sqlx::Transaction<'static, D>, sqlx::Error> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { D::begin(&pool).await });
    // It ends early only by a panic, or with the runtime.
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Whether the database asks, somewhere in the chain of sources, for another transaction.
fn is_contention<D: TransactionDatabase>(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(sqlx::Error::Database(error)) = error.downcast_ref() {
            return D::is_contention(&**error);
        }
        next = error.source();
    }
    false
}

fn store_error<D: TransactionDatabase>(error: sqlx::Error) -> Error {
    let kind = match error {
        sqlx::Error::Configuration(_) | sqlx::Error::PoolClosed => StoreErrorKind::Refused,
        _ => StoreErrorKind::Unavailable,
    };
    Error::Store {
        operation: "".into(),
        source: Arc::new(StoreError::new(<D as TransactionDatabase>::NAME, kind, error)),
    }
}
