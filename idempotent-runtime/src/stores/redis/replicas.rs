//! Not running before replicas know of it.

use std::time::Duration;

use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Value, cmd};

use super::link::Link;
use super::{NAME, RedisStore, fault};
use crate::store::{StoreError, StoreErrorKind, StoreResult};

/// How many replicas have to know of a reservation, and within what time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replicas {
    pub(super) count: usize,
    pub(super) within: Duration,
}

impl RedisStore {
    /// Waits until enough replicas have what this connection has written: the reservation of `key`.
    ///
    /// With too few the reservation stays, and the protocol either asks again with the same token or gives it back.
    pub(super) async fn wait_for_replicas(&self, key: &[u8]) -> StoreResult<()> {
        let Some(replicas) = self.inner.replicas else { return Ok(()) };
        let mut wait = cmd("WAIT");
        wait.arg(replicas.count).arg(u64::try_from(replicas.within.as_millis()).unwrap_or(u64::MAX).max(1));
        let answer = match self.link() {
            Link::Cluster(cluster) => {
                let route = Route::with_key(key, SlotAddr::Master);
                let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route));
                cluster.clone().route_command(wait, route).await
            }
            link => link.ask(&wait).await,
        };
        match answer.map_err(|error| fault::error(error, false))? {
            Value::Int(known) if usize::try_from(known).is_ok_and(|known| known >= replicas.count) => Ok(()),
            Value::Int(known) => {
                let words = format!("only {known} of {} replicas know of the reservation", replicas.count);
                Err(StoreError::new(NAME, StoreErrorKind::Unavailable, words))
            }
            other => Err(fault::unexpected(&other)),
        }
    }
}
