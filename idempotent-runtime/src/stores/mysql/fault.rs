//! What goes wrong, and what it means for the one who asked.

use std::fmt;

use sqlx::mysql::MySqlDatabaseError;

use crate::store::{StoreError, StoreErrorKind};

/// Why an operation came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// The driver's, or the server's, own words.
    Sql(sqlx::Error),
    /// A row that this version does not understand, by the column.
    Unreadable(&'static str),
    /// Our own words: asking again will not help.
    Refused(String),
    /// Our own words: asking again may help.
    Unavailable(&'static str),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

/// Errors of the server, by their numbers.
mod number {
    pub(super) const DISK_FULL: u16 = 1021;
    pub(super) const CHANGED_SINCE_READ: u16 = 1020;
    pub(super) const RECORD_FILE_FULL: u16 = 1114;
    pub(super) const LOCK_WAIT_TIMEOUT: u16 = 1205;
    pub(super) const DEADLOCK: u16 = 1213;
    pub(super) const TABLE_EXISTS: u16 = 1050;
    pub(super) const PROCEDURE_EXISTS: u16 = 1304;
    pub(super) const NO_DATABASE: u16 = 1046;
    pub(super) const NO_TABLE: u16 = 1146;
    /// Also of a savepoint.
    pub(super) const NO_PROCEDURE: u16 = 1305;
    pub(super) const ACCESS_DENIED: u16 = 1045;
    pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;
    pub(super) const NEEDS_ROW_LOGGING: u16 = 1665;
    pub(super) const PACKET_TOO_LARGE: u16 = 1153;
    pub(super) const PACKET_OVERFLOW: u16 = 1301;
    pub(super) const ROW_TOO_BIG: u16 = 1118;
    pub(super) const PREPARE_UNSUPPORTED: u16 = 1295;
    pub(super) const SHUTDOWN: u16 = 1053;
    pub(super) const KILLED: u16 = 1927;
    pub(super) const IDLE_TOO_LONG: u16 = 4031;
    pub(super) const NODE_NOT_READY: u16 = 1047;
}

impl Fault {
    fn server(&self) -> Option<&MySqlDatabaseError> {
        match self {
            Self::Sql(sqlx::Error::Database(error)) => error.try_downcast_ref(),
            _ => None,
        }
    }

    fn number(&self) -> Option<u16> {
        self.server().map(MySqlDatabaseError::number)
    }

    /// The transaction met another one and was undone; asked again at once, it comes through.
    pub(super) fn is_collision(&self) -> bool {
        matches!(self.number(), Some(number::DEADLOCK | number::CHANGED_SINCE_READ))
    }

    /// Somebody else had the lock for too long.
    pub(super) fn is_lock_timeout(&self) -> bool {
        self.number() == Some(number::LOCK_WAIT_TIMEOUT)
    }

    /// There is no savepoint of the name.
    pub(super) fn is_missing_savepoint(&self) -> bool {
        self.number() == Some(number::NO_PROCEDURE)
    }

    /// The table is not there.
    pub(super) fn is_missing_table(&self) -> bool {
        self.number() == Some(number::NO_TABLE)
    }

    /// The connection had been ended before; another one may work.
    pub(super) fn is_dead_connection(&self) -> bool {
        match self {
            Self::Sql(sqlx::Error::Io(_)) => true,
            _ => matches!(self.number(), Some(number::SHUTDOWN | number::KILLED | number::IDLE_TOO_LONG)),
        }
    }

    /// Whether the connection may serve another caller. A statement that was killed may have left its transaction open,
    /// and a server that turned read-only is better left.
    pub(super) fn spares_connection(&self) -> bool {
        if matches!(self.number(), Some(number::LOCK_WAIT_TIMEOUT)) || self.is_collision() {
            return true;
        }
        self.class().is_some_and(|class| class == "42") && self.number() != Some(number::ACCESS_DENIED)
    }

    /// The first two characters of the SQLSTATE.
    fn class(&self) -> Option<&str> {
        self.server()?.code()?.get(..2)
    }

    /// Somebody else has just made the same.
    pub(super) fn exists_already(&self) -> bool {
        matches!(self.number(), Some(number::TABLE_EXISTS | number::PROCEDURE_EXISTS))
    }

    fn kind(&self, makes_record: bool) -> StoreErrorKind {
        let error = match self {
            Self::Unreadable(_) => return StoreErrorKind::Unreadable,
            Self::Refused(_) => return StoreErrorKind::Refused,
            Self::Unavailable(_) => return StoreErrorKind::Unavailable,
            Self::Sql(error) => error,
        };
        match error {
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. } => return StoreErrorKind::Unreadable,
            sqlx::Error::Configuration(_) | sqlx::Error::PoolClosed => return StoreErrorKind::Refused,
            _ => {}
        }
        match self.number() {
            // No room for a new record. What belongs to an existing one is worth asking for again.
            Some(number::DISK_FULL | number::RECORD_FILE_FULL) if makes_record => StoreErrorKind::Full,
            Some(number::TOO_MANY_CONNECTIONS | number::NODE_NOT_READY) => StoreErrorKind::Unavailable,
            Some(
                number::ACCESS_DENIED
                | number::NO_DATABASE
                | number::NEEDS_ROW_LOGGING
                | number::PACKET_TOO_LARGE
                | number::PACKET_OVERFLOW
                | number::ROW_TOO_BIG
                | number::PREPARE_UNSUPPORTED,
            ) => StoreErrorKind::Refused,
            // Syntax and rights, data, constraints. Everything else may pass.
            _ => match self.class() {
                Some("42" | "22" | "23" | "28") => StoreErrorKind::Refused,
                _ => StoreErrorKind::Unavailable,
            },
        }
    }

    /// The error for a caller. `makes_record`: whether the operation would have added a record.
    pub(super) fn into_error(self, makes_record: bool) -> StoreError {
        StoreError::new(super::NAME, self.kind(makes_record), Cause(self))
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.into_error(false)
    }
}

/// The source of a [`StoreError`] of this store.
#[derive(Debug)]
struct Cause(Fault);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => {
                error.fmt(f)?;
                f.write_str(match self.number() {
                    Some(number::NO_TABLE | number::NO_PROCEDURE) => {
                        "; create what is missing with the statements of MySqlStoreBuilder::schema, or open the \
                         store with create_schema(true)"
                    }
                    Some(number::NO_DATABASE) => "; name a database in the URL, as in mysql://host/shop",
                    Some(number::NEEDS_ROW_LOGGING) => "; set binlog_format to ROW or MIXED",
                    _ => "",
                })
            }
            Self::Unreadable(column) => {
                write!(f, "the {column} of the record is not what this version writes")
            }
            Self::Refused(words) => f.write_str(words),
            Self::Unavailable(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Fault::Sql(error) => Some(error),
            _ => None,
        }
    }
}
