//! The stores that come with the crate, each behind a feature of its name.

mod clock;
mod connect;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod sql;
#[cfg(feature = "sqlite-unbundled")]
mod sqlite;

pub use clock::{Clock, SystemClock};
pub use connect::{ConnectError, connect, open};
#[cfg(feature = "memory")]
pub use memory::{MemoryStore, MemoryStoreBuilder};
#[cfg(feature = "postgres")]
pub(crate) use postgres::PostgresLink;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresStore, PostgresStoreBuilder};
#[cfg(feature = "postgres")]
pub use sql::SqlColumn;
#[cfg(feature = "sqlite-unbundled")]
pub use sqlite::{SqliteStore, SqliteStoreBuilder, Synchronous};
