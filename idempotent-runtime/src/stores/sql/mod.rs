//! What the stores in SQL databases share: the names of tables and columns, and how a row becomes a record.

mod names;
mod row;

pub(crate) use names::Names;
pub use names::SqlColumn;
pub(crate) use row::{RawRecord, encode, micros};
