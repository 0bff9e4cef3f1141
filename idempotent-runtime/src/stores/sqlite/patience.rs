//! How long a connection of the caller's waits for the write lock, while a call needs it to wait for so long and no longer.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor, SqliteConnection};

/// A connection whose `busy_timeout` is another one for now.
#[derive(Debug)]
pub(super) struct Patience<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    /// The connection's own, in milliseconds, as long as it is not that again.
    own: Option<i64>,
}

impl<'c> Patience<'c> {
    /// Has `connection` wait for `wait`, rounded up to milliseconds.
    pub(super) async fn lend(connection: &'c mut SqliteConnection, wait: Duration) -> sqlx::Result<Self> {
        let wanted = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX).into();
        let own: i64 = sqlx::query_scalar("PRAGMA busy_timeout").fetch_one(&mut *connection).await?;
        let mut patience = Self { connection, own: None };
        if own != wanted {
            patience.own = Some(own);
            set(patience.connection, wanted).await?;
        }
        Ok(patience)
    }

    /// Gives the connection its own timeout again.
    pub(super) async fn end(mut self) -> sqlx::Result<()> {
        let Some(own) = self.own else { return Ok(()) };
        set(self.connection, own).await?;
        self.own = None;
        Ok(())
    }
}

async fn set(connection: &mut SqliteConnection, millis: i64) -> sqlx::Result<()> {
    connection
        .execute(sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA busy_timeout = {millis}"))))
        .await
        .map(drop)
}

impl Drop for Patience<'_> {
    /// The call is dropped in the middle. Polled once, the statement has been sent to the connection's thread, which does it
    /// as soon as it has done with the one before.
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            let _ = pin!(set(self.connection, own)).poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}
