//! How a store is set up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;

use super::DynamoDbStore;
use super::fault::refused;
use super::names::{Attribute, Names};
use super::statement::Statements;
use super::table::Table;
use super::time::HostClock;
use crate::store::StoreResult;
use crate::stores::Clock;

/// Sets up a [`DynamoDbStore`]. Made by [`DynamoDbStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is opened"]
pub struct DynamoDbStoreBuilder {
    client: Client,
    table: String,
    names: Names,
    clock: Arc<dyn Clock>,
    clock_skew: Duration,
    create: bool,
    single_region_writes: bool,
}

impl DynamoDbStoreBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            table: "idempotency".into(),
            names: Names::default(),
            clock: Arc::new(HostClock),
            clock_skew: Duration::from_secs(5),
            create: true,
            single_region_writes: false,
        }
    }

    /// The name of the table, or its ARN. Default: `idempotency`.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// What an attribute of the items is called, in 1 to 64 bytes. Every [`Attribute`] says what it is called by default.
    /// All the programs at one table need the same names.
    pub fn attribute(mut self, attribute: Attribute, name: impl Into<String>) -> Self {
        self.names.rename(attribute, name.into());
        self
    }

    /// For a table that has a sort key too: its attribute, a string, and what it is in each of the store's items. The
    /// partition key stays the record's, so that the records are spread over all partitions. Default: no sort key.
    pub fn sort_key(mut self, attribute: impl Into<String>, value: impl Into<String>) -> Self {
        self.names.sort = Some((attribute.into(), value.into()));
        self
    }

    /// By how much the clocks of the machines at the table may disagree. Default: 5 seconds.
    ///
    /// DynamoDB has no clock to ask, so leases and expiries go by the clocks of the machines; each is written down as
    /// ending that much later, and so is what the store shows of them. A duplicate takes over from a dead attempt that
    /// much later, and a result is kept that much longer. A clock that is further ahead of the others takes a living
    /// attempt for dead: its result is still protected by its token, but two bodies may run.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.clock_skew = skew;
        self
    }

    /// What the store tells the time by. Default: the machine's time of day.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Whether opening creates the table if it is missing: on demand (`PAY_PER_REQUEST`), with a time to live. Default:
    /// yes. Without it, opening makes no request.
    pub fn create_table(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Says that the records of a global table are written in one region only. In the mode that replicates eventually each
    /// region judges conditions by itself, and two of them would both run; without this assurance
    /// [`examine`](crate::store::Store::examine) says so. Default: no.
    pub fn single_region_writes(mut self, assured: bool) -> Self {
        self.single_region_writes = assured;
        self
    }

    /// Creates the table if it is missing and [`create_table`](Self::create_table) allows it, and waits until it can be
    /// used.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when the names cannot work, or when the service refuses: the
    /// credentials need `dynamodb:DescribeTable`, `CreateTable` and `UpdateTimeToLive` for that.
    /// [`Unavailable`](crate::store::StoreErrorKind::Unavailable) when it does not answer, or the table does not become
    /// active within a minute.
    pub async fn open(self) -> StoreResult<DynamoDbStore> {
        if let Some(why) = self.names.fault() {
            return Err(refused(why));
        }
        let table = Table {
            statements: Statements::new(&self.names),
            client: self.client,
            name: self.table,
            names: self.names,
            clock: self.clock,
            clock_skew: self.clock_skew,
            single_region_writes: self.single_region_writes,
            purged: Mutex::new(None),
        };
        if self.create {
            table.create().await?;
        }
        Ok(DynamoDbStore { table: Arc::new(table) })
    }
}
