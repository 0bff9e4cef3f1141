//! A store in one SQLite file, for the processes of one machine.

/// Placeholder.
#[derive(Debug)]
pub struct SqliteStore;
