//! A store in a DynamoDB table, for all machines that reach it.

mod address;
mod admin;
mod attempt;
mod builder;
mod examine;
mod fault;
mod item;
mod names;
mod reserve;
mod schema;
mod statement;
mod table;
mod time;
mod url;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;

use self::table::Table;
use crate::doctor::Finding;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreResult, Write,
};

pub use self::builder::DynamoDbStoreBuilder;
pub use self::names::Attribute as DynamoDbAttribute;

/// What errors and events call this store.
const NAME: &str = "dynamodb";

/// An item has 400 KB, its attributes' names included. Beside the result there are a key, an operation's name, twenty
/// names of at most 64 bytes, and some numbers.
const MAX_RESULT_BYTES: usize = 400 * 1024 - 4 * 1024;

/// Keeps records in a DynamoDB table, one item each.
///
/// ```no_run
/// # async fn open(client: aws_sdk_dynamodb::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_runtime::stores::DynamoDbStore;
///
/// let store = DynamoDbStore::builder(client).table("idempotency").open().await?;
/// # Ok(()) }
/// ```
///
/// * **Durable.** An acknowledged write is on several disks in one region. A table that replicates to other regions keeps
///   that promise only if one region writes, or if it is strongly consistent; `examine` says so.
/// * **One request per operation**, conditional, on one item. A refused condition brings the item along, so a duplicate
///   is answered by the request that would have reserved. A second request follows only where what it found is changed,
///   on the condition that it is still the same: a take-over, a record that has expired and is still there, a lost answer
///   that is asked for again, attempts that are used up, finished steps that are kept.
/// * **Client time.** DynamoDB has no clock to ask. Leases and expiries go by the clocks of the machines, with a margin for
///   their disagreement ([`clock_skew`](DynamoDbStoreBuilder::clock_skew), 5 seconds), which what the store shows
///   includes. Owner tokens do not rest on any clock: a stale attempt never writes.
/// * **Fences** grow with every grant while the item is there. After it was deleted they grow as far as the clock of the
///   machine that reserves is ahead of the one before: they are microseconds since 1970.
/// * **The time to live only cleans up.** Every condition compares the expiry itself, since DynamoDB deletes expired
///   items days later.
/// * **Waiters poll.** `watch` gives nothing.
/// * **Unreadable items are left alone.** They answer [`Unreadable`](crate::store::StoreErrorKind::Unreadable), and a
///   list leaves them out.
///
/// A handle is cheap to clone. A result may have 405,504 bytes, and a record's steps together as much. A page of a list may
/// be short before the last one, and has no order: it reads the table.
#[derive(Clone)]
pub struct DynamoDbStore {
    table: Arc<Table>,
}

impl DynamoDbStore {
    /// Sets up a store that works with `client`, which the application has configured: region, credentials, TLS, retries
    /// and timeouts. The protocol around the store bounds each call as well.
    pub fn builder(client: Client) -> DynamoDbStoreBuilder {
        DynamoDbStoreBuilder::new(client)
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.table.client
    }
}

impl fmt::Debug for DynamoDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStore").field("table", &self.table.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for DynamoDbStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn max_result_bytes(&self) -> Option<usize> {
        Some(MAX_RESULT_BYTES)
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        self.table.reserve(&request).await
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.table.renew(key, owner, lease, &self.table.statements.renew).await
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.table.renew(key, owner, lease, &self.table.statements.begin_effects).await
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        self.table.complete(key, owner, settled, keep).await
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        self.table.release(key, owner, how).await
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        self.table.put_step(key, owner, step, lease).await
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.table.load(key).await
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        self.table.resolve(key, seen, replacement, resolution).await
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        self.table.forget(key, seen).await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.table.list(query).await
    }

    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.table.purge(limit).await
    }

    async fn examine(&self) -> StoreResult<Vec<Finding>> {
        self.table.examine().await
    }
}
