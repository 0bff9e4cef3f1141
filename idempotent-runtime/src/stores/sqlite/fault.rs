//! What goes wrong in here, and what it means for the one who asked.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::store::{StoreError, StoreErrorKind};

/// Why an operation, or the transaction around it, came to nothing. Cheap to clone: one failed commit is told to
/// everyone who took part in it.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// SQLite's own words.
    Sql(Arc<rusqlite::Error>),
    /// A row that this version does not understand.
    Unreadable(&'static str),
    /// Our own words: asking again will not help.
    Refused(String),
    /// Our own words: asking again may help.
    Unavailable(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl Fault {
    /// The lock is somebody else's right now.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Whether the connection is better opened anew before it is used again.
    pub(super) fn breaks_connection(&self) -> bool {
        matches!(
            self.code(),
            Some(
                ErrorCode::SystemIoFailure
                    | ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
                    | ErrorCode::OutOfMemory
            )
        )
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sql(error) => error.sqlite_error_code(),
            Self::Unreadable(_) | Self::Refused(_) | Self::Unavailable(_) => None,
        }
    }

    fn kind(&self, makes_record: bool) -> StoreErrorKind {
        match self {
            Self::Unreadable(_) => StoreErrorKind::Unreadable,
            Self::Refused(_) => StoreErrorKind::Refused,
            Self::Unavailable(_) => StoreErrorKind::Unavailable,
            Self::Sql(_) => match self.code() {
                // No room for a new record. What belongs to an existing one is worth asking for again.
                Some(ErrorCode::DiskFull) if makes_record => StoreErrorKind::Full,
                // Without a code it is rusqlite's own, and with the first of these codes SQLite's: the tables are
                // missing or not ours.
                None
                | Some(
                    ErrorCode::Unknown
                    | ErrorCode::ReadOnly
                    | ErrorCode::PermissionDenied
                    | ErrorCode::AuthorizationForStatementDenied
                    | ErrorCode::NotADatabase
                    | ErrorCode::DatabaseCorrupt
                    | ErrorCode::ConstraintViolation
                    | ErrorCode::TypeMismatch
                    | ErrorCode::TooBig
                    | ErrorCode::NoLargeFileSupport,
                ) => StoreErrorKind::Refused,
                _ => StoreErrorKind::Unavailable,
            },
        }
    }

    /// The error for a caller. `makes_record`: whether the operation would have added a record.
    pub(super) fn into_error(self, path: &Path, makes_record: bool) -> StoreError {
        let kind = self.kind(makes_record);
        StoreError::new(super::NAME, kind, Cause { path: path.into(), fault: self })
    }

    /// The error for a caller of [`open`](super::SqliteStore::open), which adds no record.
    pub(super) fn into_open_error(self, path: &Path) -> StoreError {
        self.into_error(path, false)
    }
}

/// The source of a [`StoreError`] of this store: which file, and what is wrong with it.
#[derive(Debug)]
struct Cause {
    path: Box<Path>,
    fault: Fault,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Sql(error) if self.is_busy() => {
                write!(f, "another connection kept the database locked for too long ({error})")
            }
            Fault::Sql(error) if missing_table(error) => write!(
                f,
                "{error}; create the tables with the statements of SqliteStoreBuilder::schema, or open the store \
                 with create_schema(true)"
            ),
            Fault::Sql(error) => error.fmt(f),
            Fault::Unreadable(column) => {
                write!(f, "the {column} of the record is not what this version writes")
            }
            Fault::Refused(words) | Fault::Unavailable(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.fault)
    }
}

/// SQLite's own error is in the text already, so it is not the source once more.
impl std::error::Error for Cause {}

fn missing_table(error: &rusqlite::Error) -> bool {
    error.to_string().contains("no such table")
}
