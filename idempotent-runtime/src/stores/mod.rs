//! The stores that come with the crate, each behind a feature of its name.

mod clock;
mod connect;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "sqlite-unbundled")]
mod sqlite;

pub use clock::{Clock, SystemClock};
pub use connect::{ConnectError, connect, open};
#[cfg(feature = "memory")]
pub use memory::{MemoryStore, MemoryStoreBuilder};
#[cfg(feature = "sqlite-unbundled")]
pub use sqlite::{SqliteStore, SqliteStoreBuilder, Synchronous};
