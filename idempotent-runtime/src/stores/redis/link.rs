//! The connection that commands go through, whichever kind it is.

use std::sync::Arc;

use redis::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, Pipeline, RedisResult, Value};

use super::reconnecting::Reconnecting;

/// Where commands go. Cheap to clone; used by many callers at once.
#[derive(Clone)]
pub(super) enum Link {
    /// The store's own, opened from a URL.
    Own(Arc<Reconnecting>),
    Manager(ConnectionManager),
    Multiplexed(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Sends one command and waits for its answer. An error that the server gave is an error here.
    pub(super) async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Self::Own(own) => own.ask(command).await,
            Self::Manager(manager) => manager.clone().send_packed_command(command).await,
            Self::Multiplexed(connection) => connection.clone().send_packed_command(command).await,
            Self::Cluster(cluster) => cluster.clone().req_packed_command(command).await,
        };
        answer?.extract_error()
    }

    /// Sends `count` commands at once. An error that the server gave is one of the values.
    pub(super) async fn ask_all(&self, commands: &Pipeline, count: usize) -> RedisResult<Vec<Value>> {
        match self {
            Self::Own(own) => own.ask_all(commands, count).await,
            Self::Manager(manager) => manager.clone().send_packed_commands(commands, 0, count).await,
            Self::Multiplexed(connection) => {
                connection.clone().send_packed_commands(commands, 0, count).await
            }
            Self::Cluster(cluster) => cluster.clone().req_packed_commands(commands, 0, count).await,
        }
    }
}
