//! How a store is set up.

use std::sync::Arc;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{ConnectOptions, MySqlPool};

use super::routine::Texts;
use super::schema::{self, Server};
use super::{MySqlStore, fault::Fault};
use crate::store::StoreResult;
use crate::stores::SqlColumn;
use crate::stores::sql::Names;

/// What the rest of a packet takes that a result is sent or fetched in.
const PACKET_OVERHEAD: u64 = 16 * 1024;

/// Sets up a [`MySqlStore`]. Made by [`MySqlStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is opened"]
pub struct MySqlStoreBuilder {
    names: Names,
    create: bool,
    procedures: bool,
    max_connections: u32,
}

impl MySqlStoreBuilder {
    pub(super) fn new() -> Self {
        Self { names: Names::new('`'), create: true, procedures: false, max_connections: 10 }
    }

    /// The name of the records table, perhaps with a database's and a point before it. Default: `idempotency`. Letters,
    /// digits and underscores; anything else is refused when the store is opened.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.names.set_table(table.into());
        self
    }

    /// The name of a column, where the default is not wanted: letters, digits and underscores, not two underscores at
    /// the beginning. This store has no [`StepNames`](SqlColumn::StepNames),
    /// [`StepResults`](SqlColumn::StepResults) and [`Watched`](SqlColumn::Watched).
    pub fn column(mut self, column: SqlColumn, name: impl Into<String>) -> Self {
        self.names.set_column(column, name.into());
        self
    }

    /// Whether opening creates what is missing. Default: yes. Without it, [`schema`](Self::schema) says what a migration
    /// has to run.
    pub fn create_schema(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether operations are stored procedures also where the server would take them as they are: MariaDB since
    /// 10.6.2. Default: no. MySQL and MariaDB 10.5 always use procedures.
    pub fn procedures(mut self, procedures: bool) -> Self {
        self.procedures = procedures;
        self
    }

    /// How many connections the pool of [`connect`](Self::connect) has at most. Default: 10.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// The statement that makes the table, for a migration of your own.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when a name is not one.
    pub fn schema(&self) -> StoreResult<String> {
        schema::check(&self.names)?;
        Ok(schema::table(&self.names))
    }

    /// The statements that make the stored procedures, one each: for MySQL, MariaDB 10.5, and
    /// [`procedures`](Self::procedures). They end in the number of their version, so that programs with different
    /// versions of this crate get along.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when a name is not one.
    pub fn schema_of_procedures(&self) -> StoreResult<Vec<String>> {
        schema::check(&self.names)?;
        Ok(schema::procedures(&self.names))
    }

    /// Connects to the server of a `mysql://` or `mariadb://` URL, with a pool of the store's own. It does not test
    /// connections before it uses them: the store repeats what met a dead one.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`Refused`](crate::store::StoreErrorKind::Refused) when the URL is not one.
    pub async fn connect(self, url: &str) -> StoreResult<MySqlStore> {
        let options: MySqlConnectOptions = url.parse().map_err(Fault::from)?;
        let pool = MySqlPoolOptions::new()
            .max_connections(self.max_connections)
            .acquire_timeout(Duration::from_secs(10))
            .test_before_acquire(false);
        self.open(pool.connect_lazy_with(options.disable_statement_logging())).await
    }

    /// Opens the store on your own pool, and checks that the server is one that it knows and has a table of a version
    /// that this crate knows.
    ///
    /// The pool's connections must keep prepared statements, as they do unless their `statement_cache_capacity` is 0.
    /// With the pool's `test_before_acquire` every operation costs a ping more.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when somebody has to put something right: the server is too
    /// old, the table is missing, somebody else's or of a newer version, a right is missing, a name is not one.
    /// [`Unavailable`](crate::store::StoreErrorKind::Unavailable) when it may go better later. The source of the error
    /// says what is wrong.
    pub async fn open(self, pool: MySqlPool) -> StoreResult<MySqlStore> {
        schema::check(&self.names)?;
        let server = Server::ask(&pool).await?;
        let procedures = self.procedures || !server.prepares_blocks();
        schema::see_to(&pool, &self.names, procedures, self.create).await?;
        Ok(MySqlStore {
            texts: Arc::new(Texts::new(&self.names, procedures)),
            max_result: usize::try_from(server.max_packet.saturating_sub(PACKET_OVERHEAD)).unwrap_or(usize::MAX),
            names: Arc::new(self.names),
            procedures,
            pool,
        })
    }
}
