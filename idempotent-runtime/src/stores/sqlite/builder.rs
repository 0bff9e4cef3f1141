//! How a store is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::SqliteStore;
use super::host_clock::HostClock;
use super::schema::{self, Location};
use super::writer::Settings;
use crate::store::StoreResult;
use crate::stores::Clock;

/// How much a commit waits for the disk: SQLite's `synchronous` setting, in write-ahead-log mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// A commit is on the disk before it is acknowledged. What was acknowledged survives the process, the operating
    /// system and the power supply.
    #[default]
    Full,
    /// A commit is handed to the operating system. It survives the process, but the last commits before a power loss
    /// or a crash of the system may be gone, **and then calls that had ended run again**.
    Normal,
}

impl Synchronous {
    pub(super) const fn as_sql(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Sets up a [`SqliteStore`]. Made by [`SqliteStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is opened"]
pub struct SqliteStoreBuilder {
    location: Location,
    max_batch: usize,
    clock: Option<Arc<dyn Clock>>,
}

impl SqliteStoreBuilder {
    pub(super) fn new(path: PathBuf) -> Self {
        let location = Location {
            path,
            table: "idempotency".into(),
            synchronous: Synchronous::default(),
            busy_timeout: Duration::from_secs(5),
            create: true,
        };
        Self { location, max_batch: 256, clock: None }
    }

    /// How much a commit waits for the disk. Default: [`Synchronous::Full`].
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.location.synchronous = synchronous;
        self
    }

    /// How long an operation waits for the write lock while another process, or another connection of this one, has it.
    /// After that the operation is [`Unavailable`](crate::store::StoreErrorKind::Unavailable). Default: 5 seconds.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.location.busy_timeout = timeout;
        self
    }

    /// The name of the records table; two more are called after it, with `_steps` and `_meta` at the end. Default:
    /// `idempotency`. Letters, digits and underscores, at most 60 of them; anything else is refused when the store is
    /// opened.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.location.table = table.into();
        self
    }

    /// Whether opening creates the file and the tables where they are missing. Default: yes. Without it,
    /// [`schema`](Self::schema) says what a migration has to run.
    pub fn create_schema(mut self, create: bool) -> Self {
        self.location.create = create;
        self
    }

    /// How many operations share one commit at most; at least one. Default: 256. More make a commit serve more callers,
    /// fewer let the other processes at the file sooner.
    pub fn max_batch(mut self, operations: usize) -> Self {
        self.max_batch = operations.max(1);
        self
    }

    /// What the store tells the time by. Default: the host's time of day, which is what the processes at one file have
    /// in common. All of them need the same clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The SQL that makes the tables, under the name given to [`table`](Self::table): for a migration of your own.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when the name is not one.
    pub fn schema(&self) -> StoreResult<String> {
        schema::check_table(&self.location.table)
            .map_err(|fault| fault.into_open_error(&self.location.path))?;
        Ok(schema::statements(&self.location.table))
    }

    /// Opens the file, and checks that it is a database that the store can write to, in write-ahead-log mode, with
    /// tables of a version that this crate knows.
    ///
    /// A database that is not in write-ahead-log mode yet is put into it, for good and for everyone who uses it.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when somebody has to put something right: the directory is
    /// missing or read-only, the file is no database, the tables are missing or of a newer version, the table name is
    /// none. [`Unavailable`](crate::store::StoreErrorKind::Unavailable) when it may go better later: another process
    /// kept the file locked. The source of the error names the file and says what is wrong.
    pub async fn open(self) -> StoreResult<SqliteStore> {
        schema::check_table(&self.location.table)
            .map_err(|fault| fault.into_open_error(&self.location.path))?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(HostClock));
        SqliteStore::start(Settings { location: self.location, max_batch: self.max_batch, clock }).await
    }
}
