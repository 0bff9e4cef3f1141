//! Calls in a transaction of the caller's: what the body writes and the record of it are one commit.
//!
//! ```text
//! begin_in ── enter ──┬─ granted ──► run_in (the body) ──► record_in ── settle or undo ──► the caller's COMMIT
//!                     └─ held ── judge, as for every call
//! ```
//!
//! There is no lease, no heartbeat and no second connection: the lock on the record is the transaction's, and ends with it.

#![cfg_attr(
    not(feature = "_sqlx"),
    allow(dead_code, reason = "without a database that it works on, nothing makes these")
)]

mod call;
mod link;
#[cfg(feature = "_sqlx")]
mod whole;

use std::fmt;
use std::time::Duration;

#[cfg(feature = "mysql")]
use crate::stores::MySqlStore;
#[cfg(feature = "postgres")]
use crate::stores::PostgresStore;
#[cfg(feature = "sqlite-transactions")]
use crate::stores::SqliteStore;

#[doc(hidden)]
pub use self::call::{BegunIn, Closing, EndingIn, EnteredIn, RunningIn, enter_in, record_in, run_in};
pub(crate) use self::call::{begin_in, begun_in};
pub(crate) use self::link::{Entered, Entry, Link, Trouble};
#[cfg(feature = "_sqlx")]
pub use self::whole::{BoxFuture, TransactionDatabase};

/// How long a duplicate waits for the transaction of the first call, where nothing else is said.
pub(crate) const WAIT: Duration = Duration::from_secs(5);

pub(crate) const DISABLED: &str =
    "a call with `transaction` needs a handle with a store, and this one is disabled";

/// Where the records of a store are, for calls in a transaction of the caller's; see
/// [`Store::transactional`](crate::store::Store::transactional). Only the stores of this crate can make one.
#[derive(Clone)]
pub struct Transactional(Records);

#[derive(Clone)]
enum Records {
    #[cfg(feature = "mysql")]
    MySql(MySqlStore),
    #[cfg(feature = "postgres")]
    Postgres(PostgresStore),
    #[cfg(feature = "sqlite-transactions")]
    Sqlite(SqliteStore),
    /// So that there is always one; never made.
    #[cfg(not(feature = "_sqlx"))]
    None(std::convert::Infallible),
}

impl Transactional {
    #[cfg(feature = "mysql")]
    pub(crate) fn mysql(store: MySqlStore) -> Self {
        Self(Records::MySql(store))
    }

    #[cfg(feature = "sqlite-transactions")]
    pub(crate) fn sqlite(store: SqliteStore) -> Self {
        Self(Records::Sqlite(store))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres(store: PostgresStore) -> Self {
        Self(Records::Postgres(store))
    }
}

impl fmt::Debug for Transactional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transactional").finish_non_exhaustive()
    }
}

/// A connection that is inside a transaction: what an argument named by `transaction = …` is a `&mut` of.
///
/// `sqlx::Transaction`, a connection of sqlx and one out of its pool: for PostgreSQL (feature `postgres`), MySQL and
/// MariaDB (`mysql`), and SQLite (`sqlite-transactions`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection that `transaction` can use",
    label = "not a transaction of a supported database",
    note = "take a `&mut sqlx::Transaction<'_, sqlx::Postgres>` or `&mut sqlx::PgConnection` with \
            the feature `postgres`; their like for MySQL with `mysql`, for SQLite with `sqlite-transactions`"
)]
pub trait TransactionConnection: sealed::Sealed + Send {
    /// The connection as the protocol uses it; `None` when the records are in another kind of database.
    #[doc(hidden)]
    fn link<'c>(&'c mut self, records: &'c Transactional) -> Option<Box<dyn Link + 'c>>;
}

mod sealed {
    pub trait Sealed {}
}

/// The types that give a connection, and how.
#[cfg(feature = "_sqlx")]
macro_rules! connections {
    ($database:ty, $connection:ty, $variant:ident => $link:expr) => {
        connections!(@one [] $connection, $variant => $link);
        connections!(@one ['t] sqlx::Transaction<'t, $database>, $variant => $link);
        connections!(@one [] sqlx::pool::PoolConnection<$database>, $variant => $link);
    };
    (@one [$($lifetime:lifetime)?] $type:ty, $variant:ident => $link:expr) => {
        impl$(<$lifetime>)? sealed::Sealed for $type {}
        impl$(<$lifetime>)? TransactionConnection for $type {
            fn link<'c>(&'c mut self, records: &'c Transactional) -> Option<Box<dyn Link + 'c>> {
                match &records.0 {
                    Records::$variant(records) => Some(Box::new($link(&mut *self, records))),
                    #[allow(unreachable_patterns, reason = "with one database only there is no other")]
                    _ => None,
                }
            }
        }
    };
}

#[cfg(feature = "postgres")]
connections!(sqlx::Postgres, sqlx::PgConnection, Postgres => crate::stores::PostgresLink::new);
#[cfg(feature = "mysql")]
connections!(sqlx::MySql, sqlx::MySqlConnection, MySql => crate::stores::MySqlLink::new);
#[cfg(feature = "sqlite-transactions")]
connections!(sqlx::Sqlite, sqlx::SqliteConnection, Sqlite => crate::stores::SqliteLink::new);
