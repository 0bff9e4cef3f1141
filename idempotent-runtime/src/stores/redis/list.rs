//! Showing records for administration: the server is asked for all its keys, some at a time.

use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, Pipeline, RedisResult, Value, cmd, from_redis_value};

use super::link::Link;
use super::record::Raw;
use super::reserve::Shown;
use super::{NAME, RedisStore, fault};
use crate::key::RecordKey;
use crate::store::{ListQuery, Page, Record, StoreError, StoreErrorKind, StoreResult};

/// So many keys are looked at for one page, or a few more; the page is then a short one.
const SCANNED: usize = 4000;
/// So many are asked for at once.
const BATCH: usize = 500;
/// What is read of a record to see whether it is asked for: all but the result.
const GLANCE: usize = 130 + 255;

/// How far a list has come: which primary, the server's cursor there, and the last key of the batch that begins there.
///
/// A batch is sorted, because a page may end within it, and the server gives whole batches only.
struct Position {
    node: usize,
    cursor: u64,
    after: Option<String>,
}

impl Position {
    const START: Self = Self { node: 0, cursor: 0, after: None };

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let (node, cursor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { node, cursor, after: parts.next().map(str::to_owned) })
    }

    fn text(&self) -> String {
        let after = self.after.as_ref().map(|after| format!(" {after}")).unwrap_or_default();
        format!("{} {}{after}", self.node, self.cursor)
    }
}

impl RedisStore {
    pub(super) async fn list_records(&self, query: &ListQuery) -> StoreResult<Page> {
        let position = query.after.as_deref().map_or(Some(Position::START), Position::parse);
        let Some(mut position) = position else {
            let words = "the `after` of a list is not one that this store has given out";
            return Err(StoreError::new(NAME, StoreErrorKind::Refused, words));
        };
        let primaries = self.primaries().await.map_err(|error| fault::error(error, false))?;
        let mut page = Page::default();
        let mut scanned = 0;
        loop {
            let Some(primary) = primaries.get(position.node) else { return Ok(page) };
            if scanned >= SCANNED {
                page.next = Some(position.text());
                return Ok(page);
            }
            let (next, mut keys) =
                self.scan(primary, position.cursor).await.map_err(|error| fault::error(error, false))?;
            scanned += keys.len();
            keys.sort_unstable();
            keys.dedup();
            keys.retain(|key| position.after.as_ref().is_none_or(|after| key > after));
            for key in self.glance(query, keys).await? {
                if page.records.len() == query.page_size() {
                    page.next = Some(position.text());
                    return Ok(page);
                }
                let record = self.record_under(&key).await?;
                page.records.extend(record.filter(|record| query.matches(record)));
                position.after = Some(key);
            }
            position = match next {
                0 => Position { node: position.node + 1, ..Position::START },
                cursor => Position { cursor, ..position },
            };
            position.after = None;
        }
    }

    /// One batch of keys, without the prefix, and where the next one begins.
    async fn scan(&self, primary: &Primary, cursor: u64) -> RedisResult<(u64, Vec<String>)> {
        let prefix = &self.inner.prefix;
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern(prefix)).arg("COUNT").arg(BATCH);
        let (next, keys): (u64, Vec<Vec<u8>>) = from_redis_value(self.ask_primary(primary, scan).await?)?;
        let keys = keys.into_iter().filter_map(|key| {
            let key = String::from_utf8(key).ok()?;
            key.strip_prefix(prefix.as_str()).map(str::to_owned)
        });
        Ok((next, keys.collect()))
    }

    /// Which of these may be asked for, by what does not change with time.
    async fn glance(&self, query: &ListQuery, keys: Vec<String>) -> StoreResult<Vec<String>> {
        let mut wanted = Vec::new();
        let look = |key: &String| {
            let mut look = Cmd::new();
            look.arg("GETRANGE").arg(format!("{}{key}", self.inner.prefix)).arg(0).arg(GLANCE);
            look
        };
        let heads = if self.link().is_cluster() {
            let mut heads = Vec::with_capacity(keys.len());
            for key in &keys {
                heads.push(match self.link().ask(&look(key)).await {
                    Ok(head) => head,
                    // What is no string is no record. A node that does not answer may have some, and must not hide them.
                    Err(error) if fault::kind(&error, false) == StoreErrorKind::Unreadable => Value::Nil,
                    Err(error) => return Err(fault::error(error, false)),
                });
            }
            heads
        } else if keys.is_empty() {
            Vec::new()
        } else {
            let mut looks = Pipeline::with_capacity(keys.len());
            for key in &keys {
                looks.add_command(look(key));
            }
            let heads = self.link().ask_all(&looks, keys.len()).await;
            heads.map_err(|error| fault::error(error, false))?
        };
        for (key, head) in keys.into_iter().zip(heads) {
            let Value::BulkString(head) = head else { continue };
            // Of what is not stamped only the state and the operation are looked at.
            let Some(raw) = Raw::decode(&head, Some(u64::MAX / 2000)) else { continue };
            let of_operation =
                query.operation.as_deref().is_none_or(|operation| operation == raw.operation());
            if raw.state != b't' && of_operation {
                wanted.push(key);
            }
        }
        Ok(wanted)
    }

    /// The record under this key, unless it is gone or unreadable.
    async fn record_under(&self, key: &str) -> StoreResult<Option<Record>> {
        let in_redis = format!("{}{key}", self.inner.prefix);
        let shown = self.inner.scripts.load.run(self.link(), in_redis.as_bytes(), |_| ()).await;
        let shown = match shown.map_err(|error| fault::error(error, false)).and_then(Shown::from_nil) {
            Ok(None) => return Ok(None),
            Ok(Some(shown)) => Some(shown),
            // One of them must not hide the others from the one who came to look.
            Err(error) if error.kind() == StoreErrorKind::Unreadable => None,
            Err(error) => return Err(error),
        };
        let record = shown.and_then(|shown| {
            let raw = Raw::decode(&shown.bytes, None)?;
            raw.record(RecordKey::new(raw.operation(), key), shown.now, shown.expires_in)
        });
        if record.is_none() {
            tracing::warn!(target: "idempotent", "the Redis store left a record out of a list that it cannot read");
        }
        Ok(record)
    }

    async fn ask_primary(&self, primary: &Primary, command: Cmd) -> RedisResult<Value> {
        match (self.link(), primary) {
            (Link::Cluster(cluster), Primary::At(host, port)) => {
                let route = SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port };
                cluster.clone().route_command(command, RoutingInfo::SingleNode(route)).await?.extract_error()
            }
            (link, _) => link.ask(&command).await,
        }
    }

    /// The servers that have records, in an order that does not change.
    async fn primaries(&self) -> RedisResult<Vec<Primary>> {
        if !self.link().is_cluster() {
            return Ok(vec![Primary::Only]);
        }
        let slots = self.link().ask(cmd("CLUSTER").arg("SLOTS")).await?;
        let slots: Vec<Vec<Value>> = from_redis_value(slots)?;
        let mut primaries = Vec::new();
        for range in slots {
            if let Some(node) = range.into_iter().nth(2) {
                let node: Vec<Value> = from_redis_value(node)?;
                let mut node = node.into_iter();
                if let (Some(host), Some(port)) = (node.next(), node.next()) {
                    primaries.push(Primary::At(from_redis_value(host)?, from_redis_value(port)?));
                }
            }
        }
        primaries.sort_unstable();
        primaries.dedup();
        Ok(primaries)
    }
}

/// A server that has records.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Primary {
    Only,
    At(String, u16),
}

/// The pattern for everything that begins with `prefix`.
fn pattern(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for letter in prefix.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('*');
    pattern
}
