//! A file by its URL.

use crate::stores::ConnectError;

/// The file that a SQLite URL names.
pub(crate) fn file_of(url: &str) -> Result<&str, ConnectError> {
    let path = url.trim_start_matches("sqlite:").trim_start_matches("//");
    let reason = if path.is_empty() || path.starts_with(':') {
        "a SQLite URL names a file, for example `sqlite:idempotency.db`; for a store that is gone with the process use \
         `memory:`"
    } else if path.contains('?') {
        // As a part of the name it would make a new and empty file, in which no key was ever used.
        "a SQLite URL takes no parameters after `?`; for other settings, or a file of such a name, use \
         `SqliteStore::builder`"
    } else {
        return Ok(path);
    };
    Err(ConnectError::Invalid { reason })
}
