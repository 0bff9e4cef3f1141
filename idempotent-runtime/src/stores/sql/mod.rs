//! What the stores in SQL databases share: the names of tables and columns, and how a row becomes a record.

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod names;
mod row;

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use names::Names;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use names::SqlColumn;
pub(crate) use row::{RawRecord, encode, micros};
