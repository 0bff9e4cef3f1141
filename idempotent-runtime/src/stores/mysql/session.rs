//! Borrowing a connection for one operation, and giving it back sound or not at all.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sqlx::mysql::{MySqlArguments, MySqlConnection, MySqlRow};
use sqlx::pool::PoolConnection;
use sqlx::{Arguments, AssertSqlSafe, Encode, Executor, MySql, MySqlPool, Type};
use tokio::runtime::Handle;

use super::fault::Fault;

/// How long the answer to a caller who is gone is waited for. A connection in the middle of an answer is of no use to
/// anybody; closing it at once would make a slow server slower, with a new connection for every impatient caller.
const LINGER: Duration = Duration::from_secs(5);

/// So often an operation is tried again at once that collided with another one.
const COLLISIONS: u32 = 5;

/// Adds a value to what a statement is sent with.
pub(super) fn bind<'q, T>(arguments: &mut MySqlArguments, value: T) -> Result<(), Fault>
where
    T: Encode<'q, MySql> + Type<MySql> + 'q,
{
    arguments.add(value).map_err(|error| Fault::Sql(sqlx::Error::Encode(error)))
}

/// Sends one statement and gives all rows of all its answers.
///
/// What collided on the server, or met a connection that had been closed meanwhile, is sent again: every operation
/// recognises itself.
pub(super) async fn ask(
    pool: &MySqlPool,
    text: &Arc<str>,
    arguments: &MySqlArguments,
) -> Result<Vec<MySqlRow>, Fault> {
    let (mut collisions, mut dead) = (0, 0);
    loop {
        let mut lent = Lent::new(pool).await?;
        let (text, arguments) = (Arc::clone(text), arguments.clone());
        let asked = Lingering::new(async move {
            let query = sqlx::query_with(AssertSqlSafe(text), arguments);
            let answer = lent.connection()?.fetch_all(query).await.map_err(Fault::from);
            lent.give_back_after(answer)
        });
        match asked.await {
            Err(fault) if fault.is_collision() && collisions < COLLISIONS => collisions += 1,
            // As many as a restart of the server can have left in the pool.
            Err(fault) if fault.is_dead_connection() && dead < pool.options().get_max_connections() => {
                dead += 1;
            }
            answer => return answer,
        }
    }
}

/// Sends statements that cannot be prepared, and gives the rows of their answers.
pub(super) async fn ask_as_text(pool: &MySqlPool, text: String) -> Result<Vec<MySqlRow>, Fault> {
    let mut lent = Lent::new(pool).await?;
    Lingering::new(async move {
        let query = sqlx::raw_sql(AssertSqlSafe(text));
        let answer = lent.connection()?.fetch_all(query).await.map_err(Fault::from);
        lent.give_back_after(answer)
    })
    .await
}

/// A connection that goes back into its pool only when its last answer has been read. Dropped before, it is closed.
struct Lent(Option<PoolConnection<MySql>>);

impl Lent {
    async fn new(pool: &MySqlPool) -> Result<Self, Fault> {
        if Handle::try_current().is_err() {
            return Err(Fault::Unavailable("the MySQL store needs a tokio runtime"));
        }
        Ok(Self(Some(pool.acquire().await?)))
    }

    fn connection(&mut self) -> Result<&mut MySqlConnection, Fault> {
        self.0.as_deref_mut().ok_or(Fault::Unavailable("the connection is gone"))
    }

    fn give_back_after<T>(mut self, answer: Result<T, Fault>) -> Result<T, Fault> {
        if answer.as_ref().err().is_none_or(Fault::spares_connection) && Handle::try_current().is_ok() {
            self.0 = None;
        }
        answer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(connection) = self.0.take() else { return };
        if Handle::try_current().is_ok() {
            drop(connection.detach());
        } else {
            // The pool would start a task, which panics without a runtime. The process is about to end.
            std::mem::forget(connection);
        }
    }
}

/// An exchange with the server that is seen to its end in the background, should its caller go away.
struct Lingering<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Lingering<T> {
    fn new(exchange: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(exchange)))
    }
}

impl<T: Send + 'static> Future for Lingering<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(exchange) = &mut self.0 else { return Poll::Pending };
        let answer = exchange.as_mut().poll(context);
        if answer.is_ready() {
            self.0 = None;
        }
        answer
    }
}

impl<T: Send + 'static> Drop for Lingering<T> {
    fn drop(&mut self) {
        if let Some(exchange) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(LINGER, exchange));
        }
    }
}
