//! What only the SQLite store does: processes, locks, files, crashes. What every store does is the conformance suite's.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "sqlite_store/support.rs"]
mod support;

#[path = "sqlite_store/agreement.rs"]
mod agreement;
#[path = "sqlite_store/conforming.rs"]
mod conforming;
#[path = "sqlite_store/failures.rs"]
mod failures;
#[path = "sqlite_store/files.rs"]
mod files;
#[path = "sqlite_store/processes.rs"]
mod processes;
#[path = "sqlite_store/records.rs"]
mod records;
