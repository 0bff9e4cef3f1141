//! How a store is set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::Client;
use redis::aio::{ConnectionManager, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::SentinelClient;

use super::link::Link;
use super::notify::{Ear, Notifier};
use super::reconnecting::{Boxed, Reconnecting, Source, Timeouts};
use super::replicas::Replicas;
use super::url::{self, Address};
use super::{RedisStore, fault};
use crate::store::{StoreError, StoreErrorKind, StoreResult};

/// Sets up a [`RedisStore`]. Made by [`RedisStore::builder`] and its sisters.
#[must_use = "a builder does nothing until it is opened"]
pub struct RedisStoreBuilder {
    target: Target,
    prefix: String,
    timeouts: Timeouts,
    replicas: Option<Replicas>,
    notifications: Option<Vec<Client>>,
}

enum Target {
    Url(String),
    Sentinel(Box<SentinelClient>),
    Link(Link),
}

impl RedisStoreBuilder {
    fn new(target: Target) -> Self {
        Self {
            target,
            prefix: "idempotent:".into(),
            timeouts: Timeouts { connect: Duration::from_secs(1), response: Duration::from_secs(2) },
            replicas: None,
            notifications: None,
        }
    }

    /// What every key in Redis begins with. Default: `idempotent:`. Stores with different prefixes do not see each other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long connecting may take, for connections that the store opens. Default: 1 second.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.connect = timeout;
        self
    }

    /// How long an answer may take, on connections that the store opens. After that the operation is
    /// [`Unavailable`](StoreErrorKind::Unavailable) and the next one gets a new connection. Default: 2 seconds, which is
    /// less than what the protocol gives a call by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.response = timeout;
        self
    }

    /// Grants a reservation only when so many replicas have acknowledged it within `timeout` (Redis's `WAIT`); otherwise
    /// the operation is [`Unavailable`](StoreErrorKind::Unavailable) and nothing runs.
    ///
    /// It makes it much less likely that a failover forgets a running call, and does not make it impossible: Redis may
    /// promote a replica that has not acknowledged. It costs a round trip to the replicas for each first call, during which
    /// the connection carries nothing else, so give the store a connection of its own.
    pub fn wait_replicas(mut self, count: usize, timeout: Duration) -> Self {
        self.replicas = Some(Replicas { count, within: timeout });
        self
    }

    /// Where the store may open one more connection to hear of changes, when it was built from a connection and knows no
    /// address; of a cluster, any nodes. Without it, waiting callers poll. A store from a URL listens by itself.
    pub fn notifications(mut self, nodes: impl IntoIterator<Item = Client>) -> Self {
        self.notifications = Some(nodes.into_iter().collect());
        self
    }

    /// Connects, unless the connection was given.
    ///
    /// # Errors
    /// [`Refused`](StoreErrorKind::Refused) when the URL or the password is wrong, or TLS is not compiled in;
    /// [`Unavailable`](StoreErrorKind::Unavailable) when the server cannot be reached.
    pub async fn open(self) -> StoreResult<RedisStore> {
        let timeouts = self.timeouts;
        let given = self.notifications.map(Ear::Nodes);
        let (link, ear) = match self.target {
            Target::Link(link) => (link, given),
            Target::Sentinel(sentinel) => {
                own(Source::Sentinel(tokio::sync::Mutex::new(*sentinel)), given, timeouts)
            }
            Target::Url(url) => match url::parse(&url).map_err(|error| fault::error(error, false))? {
                Address::Server(client) => own(Source::Server(*client), given, timeouts),
                Address::Sentinel(sentinel) => {
                    own(Source::Sentinel(tokio::sync::Mutex::new(*sentinel)), given, timeouts)
                }
                Address::Cluster(nodes) => {
                    let client = ClusterClient::builder(nodes.clone())
                        .connection_timeout(timeouts.connect)
                        .response_timeout(timeouts.response)
                        .overall_response_timeout(Some(timeouts.response))
                        .retries(4)
                        .build();
                    let client = client.map_err(|error| fault::error(error, false))?;
                    let connecting: Boxed<'_, _> = Box::pin(client.get_async_connection());
                    let cluster = connecting.await;
                    let cluster = cluster.map_err(|error| fault::error(error, false))?;
                    let nodes: Result<Vec<_>, _> = nodes.into_iter().map(Client::open).collect();
                    let nodes = nodes.map_err(|error| fault::error(error, false))?;
                    (Link::Cluster(cluster), Some(given.unwrap_or(Ear::Nodes(nodes))))
                }
            },
        };
        if self.prefix.contains(['\r', '\n', '\0']) {
            let words = "the prefix of a Redis store is printable text";
            return Err(StoreError::new(super::NAME, StoreErrorKind::Refused, words));
        }
        let channel = format!("{}changes", self.prefix);
        let notifier = ear.map(|ear| Notifier::new(ear, channel.clone(), timeouts));
        let opened_by_us = matches!(link, Link::Own(_));
        let store = RedisStore::new(link, self.prefix, &channel, notifier, self.replicas);
        if opened_by_us {
            store.greet().await?;
        }
        Ok(store)
    }
}

/// A connection of our own to `source`, and where to listen.
fn own(source: Source, given: Option<Ear>, timeouts: Timeouts) -> (Link, Option<Ear>) {
    let source = Arc::new(source);
    let link = Link::Own(Arc::new(Reconnecting::new(Arc::clone(&source), timeouts)));
    (link, Some(given.unwrap_or(Ear::Primary(source))))
}

impl fmt::Debug for RedisStoreBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("prefix", &self.prefix)
            .field("timeouts", &self.timeouts)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Sets up a store at a URL; see [`open`](Self::open).
    pub fn builder(url: impl Into<String>) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Url(url.into()))
    }

    /// Sets up a store at the primary that sentinels name. The client has to be one for the primary
    /// (`SentinelServerType::Master`).
    pub fn from_sentinel(sentinel: SentinelClient) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Sentinel(Box::new(sentinel)))
    }

    /// Sets up a store on a connection manager. Its timeouts and its way to reconnect are those that it was made with: give
    /// it a response timeout below the handle's `store_timeout`, and a short `max_delay`, since every call waits while it
    /// reconnects.
    pub fn from_manager(manager: ConnectionManager) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Link(Link::Manager(manager)))
    }

    /// Sets up a store on one multiplexed connection. **It does not reconnect**: when it has broken, the store is unavailable
    /// for good.
    pub fn from_connection(connection: MultiplexedConnection) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Link(Link::Multiplexed(connection)))
    }

    /// Sets up a store on a cluster's connection. It must not read from replicas.
    pub fn from_cluster(connection: ClusterConnection) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Link(Link::Cluster(connection)))
    }
}
