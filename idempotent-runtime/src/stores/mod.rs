//! The stores that come with the crate, each behind a feature of its name.

mod clock;
mod connect;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "_sqlx")]
mod sql;
#[cfg(feature = "sqlite-unbundled")]
mod sqlite;

pub use clock::{Clock, SystemClock};
pub use connect::{ConnectError, connect, open, open_existing};
#[cfg(feature = "dynamodb")]
pub use dynamodb::{DynamoDbAttribute, DynamoDbStore, DynamoDbStoreBuilder};
#[cfg(feature = "memory")]
pub use memory::{MemoryStore, MemoryStoreBuilder};
#[cfg(feature = "mysql")]
pub(crate) use mysql::MySqlLink;
#[cfg(feature = "mysql")]
pub use mysql::{MySqlStore, MySqlStoreBuilder};
#[cfg(feature = "postgres")]
pub(crate) use postgres::PostgresLink;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresStore, PostgresStoreBuilder};
#[cfg(feature = "redis")]
pub use redis::{RedisStore, RedisStoreBuilder};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use sql::SqlColumn;
#[cfg(feature = "sqlite-transactions")]
pub(crate) use sqlite::SqliteLink;
#[cfg(feature = "sqlite-unbundled")]
pub use sqlite::{SqliteStore, SqliteStoreBuilder, Synchronous};
