//! How a store is set up.

use std::sync::Arc;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{ConnectOptions, MySqlPool};
use tokio::sync::OnceCell;

use super::fault::Fault;
use super::{Inner, MySqlStore, schema};
use crate::store::StoreResult;
use crate::stores::SqlColumn;
use crate::stores::sql::Names;

/// Sets up a [`MySqlStore`]. Made by [`MySqlStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is opened"]
pub struct MySqlStoreBuilder {
    pool: MySqlPool,
    names: Names,
    create: bool,
    procedures: bool,
}

impl MySqlStoreBuilder {
    pub(super) fn new(pool: MySqlPool) -> Self {
        Self { pool, names: Names::new('`'), create: true, procedures: false }
    }

    /// The name of the records table, perhaps with a database's and a point before it. Default: `idempotency`. Letters,
    /// digits and underscores; anything else is refused when the store is built.
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

    /// Whether the store creates what is missing. Default: yes. Without it, [`schema`](Self::schema) says what a migration
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

    /// Makes the store, which looks at the server at its first use: which one it is, and whether it has a table of a
    /// version that this crate knows.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when a name is not one.
    pub fn build(self) -> StoreResult<MySqlStore> {
        schema::check(&self.names)?;
        Ok(MySqlStore(Arc::new(Inner {
            pool: self.pool,
            names: self.names,
            create: self.create,
            procedures: self.procedures,
            familiar: OnceCell::new(),
        })))
    }

    /// Makes the store and has it look at the server now.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused) when somebody has to put something right: the server is too
    /// old, the table is missing, somebody else's or of a newer version, a right is missing, a name is not one.
    /// [`Unavailable`](crate::store::StoreErrorKind::Unavailable) when it may go better later. The source of the error
    /// says what is wrong.
    pub async fn open(self) -> StoreResult<MySqlStore> {
        let store = self.build()?;
        store.familiar().await?;
        Ok(store)
    }
}

/// A pool of at most ten connections to the server of `url`, made as the first operation needs them.
pub(super) fn pool_for(url: &str) -> Result<MySqlPool, Fault> {
    let options: MySqlConnectOptions = url.parse()?;
    let pool = MySqlPoolOptions::new()
        .max_connections(10)
        .acquire_timeout(Duration::from_secs(10))
        // The store asks again what met a dead connection.
        .test_before_acquire(false);
    Ok(pool.connect_lazy_with(options.disable_statement_logging()))
}
