//! A connection of the store's own, which is made again when it has broken.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::sentinel::SentinelClient;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value,
};
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    pub(super) response: Duration,
}

/// Where the primary is found.
pub(super) enum Source {
    Server(Client),
    /// Asked anew for every connection, because that is when the primary may be another one.
    Sentinel(tokio::sync::Mutex<SentinelClient>),
}

impl Source {
    pub(super) async fn client(&self) -> RedisResult<Client> {
        match self {
            Self::Server(client) => Ok(client.clone()),
            Self::Sentinel(sentinel) => {
                let mut sentinel = sentinel.lock().await;
                let asking: Boxed<'_, Client> = Box::pin(sentinel.async_get_client());
                asking.await
            }
        }
    }
}

/// What is rare and deep, put on the heap so that the futures around it stay small.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = RedisResult<T>> + Send + 'a>>;

/// One try to connect, shared by everyone who needs the connection. Whoever polls it drives it, so that it goes on when one
/// of them is dropped.
type Attempt = Arc<OnceCell<RedisResult<MultiplexedConnection>>>;

/// A connection to the primary.
pub(super) struct Reconnecting {
    source: Arc<Source>,
    timeouts: Timeouts,
    current: Mutex<Attempt>,
}

impl fmt::Debug for Reconnecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnecting").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}

impl Reconnecting {
    /// Connects at the first command.
    pub(super) fn new(source: Arc<Source>, timeouts: Timeouts) -> Self {
        Self { source, timeouts, current: Mutex::default() }
    }

    pub(super) async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let (attempt, mut connection) = self.connection().await?;
        let answer = connection.send_packed_command(command).await;
        let error = match &answer {
            Err(error) => Some(error.clone()),
            Ok(Value::ServerError(error)) => Some(error.clone().into()),
            Ok(_) => None,
        };
        self.judge(&attempt, error);
        answer
    }

    pub(super) async fn ask_all(&self, commands: &Pipeline, count: usize) -> RedisResult<Vec<Value>> {
        let (attempt, mut connection) = self.connection().await?;
        let answer = connection.send_packed_commands(commands, 0, count).await;
        let error = match &answer {
            Err(error) => Some(error.clone()),
            Ok(values) => values.iter().find_map(|value| match value {
                Value::ServerError(error) => Some(error.clone().into()),
                _ => None,
            }),
        };
        self.judge(&attempt, error);
        answer
    }

    /// Gives the connection up if `error` says that it is of no use.
    fn judge(&self, attempt: &Attempt, error: Option<RedisError>) {
        if error.is_some_and(|error| is_of_no_use(&error)) {
            self.give_up(attempt);
        }
    }

    async fn connection(&self) -> RedisResult<(Attempt, MultiplexedConnection)> {
        let attempt = Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner));
        match attempt.get_or_init(|| self.connect()).await {
            Ok(connection) => Ok((Arc::clone(&attempt), connection.clone())),
            Err(error) => {
                // The next one tries again.
                self.give_up(&attempt);
                Err(error.clone())
            }
        }
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeouts.connect))
            .set_response_timeout(Some(self.timeouts.response))
            .set_pipeline_buffer_size(256);
        // Twice the time: the sentinels are asked first.
        let connecting =
            async { self.source.client().await?.get_multiplexed_async_connection_with_config(&config).await };
        timeout(self.timeouts.connect * 2, connecting)
            .await
            .unwrap_or_else(|elapsed| Err(std::io::Error::new(std::io::ErrorKind::TimedOut, elapsed).into()))
    }

    /// From now on another connection is made; the one of `attempt` ends when its last command has been answered.
    fn give_up(&self, attempt: &Attempt) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, attempt) {
            *current = Attempt::default();
        }
    }
}

/// Broken, silent for too long, or to a server that is not the primary any more.
fn is_of_no_use(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Io | ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
        )
}
