//! A store in the memory of one process.

/// Placeholder.
#[derive(Debug)]
pub struct MemoryStore;
