//! How a store is set up.

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::super::sql::{Names, SqlColumn};
use super::ask::Sending;
use super::fault::Fault;
use super::prepared::Prepared;
use super::text::Statements;
use super::{PostgresStore, Sql, schema};
use crate::store::StoreResult;

/// Identifiers of PostgreSQL are cut off after so many bytes.
const LONGEST_NAME: usize = 63;

/// Sets up a [`PostgresStore`]. Made by [`PostgresStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct PostgresStoreBuilder {
    pool: PgPool,
    names: Names,
    create: bool,
    channel: Option<String>,
    notifications: bool,
    sending: Sending,
    batch: usize,
    fillfactor: u8,
}

impl PostgresStoreBuilder {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            names: Names::new('"'),
            create: true,
            channel: None,
            notifications: true,
            sending: Sending::Prepared,
            batch: 1,
            fillfactor: 50,
        }
    }

    /// The name of the table, with or without that of a schema before it: `shop.idempotency`. Default: `idempotency`, in
    /// whichever schema the search path names first. Letters, digits and underscores.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.names.set_table(table.into());
        self
    }

    /// Another name for a column.
    pub fn column(mut self, column: SqlColumn, name: impl Into<String>) -> Self {
        self.names.set_column(column, name.into());
        self
    }

    /// Whether the store creates the table when it finds none. Default: yes. Without it, [`schema`](Self::schema) says
    /// what a migration has to run.
    pub fn create_schema(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether duplicates that wait are woken by `NOTIFY`. Default: yes. It takes one connection beside the pool, from the
    /// first waiter on. Behind a proxy in transaction mode no notification arrives; the store finds that out and has the
    /// waiters poll.
    pub fn notifications(mut self, notifications: bool) -> Self {
        self.notifications = notifications;
        self
    }

    /// The channel of the notifications. Default: the name of the table. All processes at one table need the same.
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = Some(channel.into());
        self
    }

    /// Whether statements are prepared. Default: yes. Without it they are sent as plain text and planned every time, which
    /// costs about a tenth of a millisecond each and works behind every proxy, also those that give each statement another
    /// connection and know nothing of prepared ones.
    pub fn prepared_statements(mut self, prepared: bool) -> Self {
        self.sending = if prepared { Sending::Prepared } else { Sending::Plain };
        self
    }

    /// Joins operations that wait at the same time into one statement, and one commit, of at most so many. Each keeps an
    /// outcome of its own. Default: 1, which joins nothing; 64 is a good number.
    ///
    /// It multiplies what a server can take that waits for its disk at every commit. One that is alone does not wait for
    /// others.
    pub fn batch(mut self, operations: usize) -> Self {
        self.batch = operations.max(1);
        self
    }

    /// How full, in percent, the pages of a new table are made by insertion; the rest is for the results, so that writing
    /// one stays on its page. Default: 50, for results of about the size of a row (200 bytes); 30 where calls are joined
    /// by [`batch`](Self::batch). Between 10 and 100.
    pub fn fill_factor(mut self, percent: u8) -> Self {
        self.fillfactor = percent.clamp(10, 100);
        self
    }

    /// The SQL that makes the table, under the names that were given: for a migration of your own.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when a name is none.
    pub fn schema(&self) -> StoreResult<String> {
        self.check()?;
        Ok(schema::statements(&self.names, self.fillfactor))
    }

    fn check(&self) -> StoreResult<()> {
        let refused = |words| Err(Fault::Refused(words).into_error(self.names.table(), false));
        if let Err(words) = self.names.check(LONGEST_NAME) {
            return refused(words);
        }
        let channel = self.channel_name();
        let fits = channel.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
        if !fits || channel.is_empty() || channel.len() > LONGEST_NAME {
            return refused("the channel must be 1 to 63 letters, digits, underscores and points".into());
        }
        Ok(())
    }

    fn channel_name(&self) -> &str {
        self.channel.as_deref().unwrap_or_else(|| self.names.bare_table())
    }

    /// The store. Nothing is asked of the server yet; the table is created when the first call finds none.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when a name is none.
    pub fn build(self) -> StoreResult<PostgresStore> {
        self.check()?;
        Ok(self.build_checked())
    }

    pub(super) fn build_checked(self) -> PostgresStore {
        let channel = self.channel_name().to_owned();
        let statements = Statements::new(&self.names, &channel);
        let sql = Sql {
            prepared: Prepared::new(&statements, self.sending),
            statements,
            sending: self.sending,
            table: self.names.quoted(self.names.table()),
            schema: schema::statements(&self.names, self.fillfactor),
            create: self.create,
            names: self.names,
        };
        PostgresStore::from_parts(self.pool, sql, self.notifications.then_some(channel), self.batch)
    }

    /// The store, when its table is there, or has been created, and is of a version that this crate knows.
    ///
    /// # Errors
    /// Those of [`build`](Self::build); [`Refused`](crate::store::StoreErrorKind::Refused) also when the table is missing
    /// or newer, and [`Unavailable`](crate::store::StoreErrorKind::Unavailable) when the server does not answer.
    pub async fn open(self) -> StoreResult<PostgresStore> {
        let store = self.build()?;
        store.prepare().await?;
        Ok(store)
    }
}

/// A pool for the store alone, which connects when it is first used. It does not test a connection before each use: the
/// store throws broken ones away by itself.
pub(super) fn pool(url: &str) -> Result<PgPool, Fault> {
    let options = PgPoolOptions::new()
        .test_before_acquire(false)
        .max_connections(16)
        .acquire_timeout(std::time::Duration::from_secs(10));
    // Without sqlx's words, in which the URL and its password may be.
    let refused = |_: sqlx::Error| {
        Fault::Refused("the URL is not one of PostgreSQL; for example `postgres://user@host/database`".into())
    };
    let connection: PgConnectOptions = url.parse().map_err(refused)?;
    // Nothing here has a fraction, and proxies ask to be told to let this setting through.
    Ok(options.connect_lazy_with(connection.extra_float_digits(None)))
}
