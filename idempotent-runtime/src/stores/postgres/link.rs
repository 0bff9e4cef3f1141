//! Connections out of the pool: lent for one statement, and looked after when a call is dropped in the middle of it.

use std::future::Future;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection, PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::fault::Fault;

/// How often a statement is asked again because its record changed under it. Each time somebody else got through.
const TRIES: u32 = 30;

/// How long a connection may take to bring a dropped call's statement to its end.
const SETTLE: Duration = Duration::from_secs(2);

/// What is done on one connection. Run as often as needed: every time the answer is the same.
pub(super) trait Task: Sync {
    /// What comes out of it.
    type Answer: Send;

    /// Does it on any connection.
    fn run(&self, connection: &mut PgConnection) -> impl Future<Output = Result<Self::Answer, Fault>> + Send;
}

/// Runs `task` on a connection of the pool. Connections that turn out to be broken are thrown away, one after the other,
/// so that a pool full of them after a restart of the server costs nobody more than a moment.
pub(super) async fn run<T: Task>(pool: &PgPool, task: &T) -> Result<T::Answer, Fault> {
    let mut broken = 0;
    let mut tries = 0;
    loop {
        let mut lent = Lent::new(pool).await?;
        let answer = loop {
            tries += 1;
            match task.run(lent.connection()?).await {
                Err(fault) if fault.is_contention() && tries < TRIES => pause(tries).await,
                answer => break answer,
            }
        };
        match answer {
            Err(fault) if fault.breaks_connection() => {
                lent.discard();
                broken += 1;
                if broken > pool.size().saturating_add(1) {
                    return Err(fault);
                }
            }
            answer => {
                lent.give_back();
                return answer;
            }
        }
    }
}

/// Nothing at first: whoever was faster has committed by now.
async fn pause(tries: u32) {
    if tries > 3 {
        let most = f64::from(1_u32 << tries.min(6)) / 1000.0;
        tokio::time::sleep(Duration::from_secs_f64(rand::random_range(0.0..most))).await;
    }
}

/// A connection that is in use.
pub(super) struct Lent {
    connection: Option<PoolConnection<Postgres>>,
    /// Whether the pool replaces every connection that it loses.
    replaced: bool,
}

impl Lent {
    pub(super) async fn new(pool: &PgPool) -> Result<Self, Fault> {
        let replaced = pool.options().get_min_connections() > 0;
        Ok(Self { connection: Some(pool.acquire().await?), replaced })
    }

    pub(super) fn connection(&mut self) -> Result<&mut PgConnection, Fault> {
        self.connection.as_deref_mut().ok_or(Fault::Unavailable("the connection has been given back"))
    }

    /// Back to the pool: it waits for nothing.
    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            part_with(connection, true, self.replaced);
        }
    }

    /// Away with it.
    pub(super) fn discard(mut self) {
        if let Some(connection) = self.connection.take() {
            part_with(connection, false, self.replaced);
        }
    }
}

impl Drop for Lent {
    /// In the middle of a statement: the call was dropped. The connection is brought to the statement's end, if that
    /// comes soon; nobody is given one that still waits for an answer, and none is kept from the pool by a server that
    /// stands still.
    fn drop(&mut self) {
        let replaced = self.replaced;
        let Some(mut connection) = self.connection.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return part_with(connection, false, replaced) };
        drop(runtime.spawn(async move {
            let settled = timeout(SETTLE, connection.ping()).await.is_ok_and(|answer| answer.is_ok());
            part_with(connection, settled, replaced);
        }));
    }
}

/// Gives a connection back or closes it. sqlx spawns a task to give one back, and also to replace one that is gone, and
/// panics where there is no runtime: then one that is not replaced is closed, and one that is stays open.
fn part_with(connection: PoolConnection<Postgres>, usable: bool, replaced: bool) {
    match Handle::try_current() {
        Ok(_) if usable => drop(connection),
        Err(_) if replaced => std::mem::forget(connection),
        _ => drop(connection.detach()),
    }
}
