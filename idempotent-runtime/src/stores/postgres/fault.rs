//! What goes wrong in here, and what it means for the one who asked.

use std::fmt;

use crate::store::{StoreError, StoreErrorKind};

/// Why an operation came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// What sqlx says, with PostgreSQL's own words in it.
    Sql(sqlx::Error),
    /// A record that this version does not understand.
    Unreadable(&'static str),
    /// Our own words: asking again will not help.
    Refused(String),
    /// Our own words: asking again may help.
    Unavailable(&'static str),
    /// The record changed while the statement ran; nothing was written.
    Contended,
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    /// PostgreSQL's five letters.
    pub(super) fn code(&self) -> Option<String> {
        match self {
            Self::Sql(sqlx::Error::Database(error)) => error.code().map(Into::into),
            _ => None,
        }
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.code().is_some_and(|code| codes.contains(&&*code))
    }

    /// Nothing was written, and the same statement may go through at once: somebody else was faster.
    ///
    /// The two codes are a serialization failure, which is how a stricter isolation level than ours says it, and a
    /// deadlock.
    pub(super) fn is_contention(&self) -> bool {
        matches!(self, Self::Contended) || self.has_code(&["40001", "40P01"])
    }

    /// The connection is of no use any more: it is broken, the server ends it, or the server behind it has become a
    /// standby. The last two: a prepared statement that is not there, or does not fit a changed table.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            Self::Sql(sqlx::Error::Database(error)) => error.code().is_some_and(|code| {
                matches!(
                    &*code,
                    "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "26000" | "0A000" | "25P02"
                ) || code.starts_with("08")
            }),
            Self::Sql(
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::WorkerCrashed,
            ) => true,
            _ => false,
        }
    }

    /// It would come to everybody who asks now: no answer, no connection, no permission.
    pub(super) fn is_for_all(&self) -> bool {
        match self {
            Self::Sql(sqlx::Error::Database(_)) => {
                self.breaks_connection() || self.is_missing_table() || self.has_code(&["42501"])
            }
            Self::Sql(_) | Self::Unavailable(_) => true,
            Self::Unreadable(_) | Self::Refused(_) | Self::Contended => false,
        }
    }

    /// The table is not there.
    pub(super) fn is_missing_table(&self) -> bool {
        self.has_code(&["42P01"])
    }

    /// There is no prepared statement of the name.
    pub(super) fn is_missing_statement(&self) -> bool {
        self.has_code(&["26000"])
    }

    /// `makes_record`: whether the operation would have added a record.
    fn kind(&self, makes_record: bool) -> StoreErrorKind {
        match self {
            Self::Unreadable(_) => StoreErrorKind::Unreadable,
            Self::Refused(_)
            | Self::Sql(
                sqlx::Error::Configuration(_)
                | sqlx::Error::InvalidArgument(_)
                | sqlx::Error::Encode(_)
                | sqlx::Error::PoolClosed
                | sqlx::Error::Tls(_),
            ) => StoreErrorKind::Refused,
            Self::Sql(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                match &*code {
                    // No room for a new record. What belongs to an existing one is worth asking for again.
                    "53100" if makes_record => StoreErrorKind::Full,
                    _ => match code.get(..2) {
                        // Data, constraints, authorization, transaction modes of functions, names, missing tables and
                        // permissions, limits of the program.
                        Some("22" | "23" | "28" | "3D" | "3F" | "42" | "44" | "54" | "P0") => {
                            StoreErrorKind::Refused
                        }
                        _ => StoreErrorKind::Unavailable,
                    },
                }
            }
            Self::Sql(_) | Self::Unavailable(_) | Self::Contended => StoreErrorKind::Unavailable,
        }
    }

    /// The error for a caller.
    pub(super) fn into_error(self, table: &str, makes_record: bool) -> StoreError {
        let kind = self.kind(makes_record);
        let words = self.words(table);
        StoreError::new(super::NAME, kind, Cause { words, fault: self })
    }

    fn words(&self, table: &str) -> String {
        match self {
            Self::Sql(error) if self.is_missing_table() => format!(
                "{error}; create the table `{table}` with the statements of PostgresStoreBuilder::schema, or leave \
                 create_schema on"
            ),
            Self::Sql(error) if self.has_code(&["25006"]) => {
                format!("{error}: the server is a standby or read-only, and the store has to write")
            }
            Self::Sql(error) if self.has_code(&["42P10"]) => {
                format!("{error}; the column of the key needs to be the primary key of `{table}`")
            }
            Self::Sql(error) if self.has_code(&["26000", "42P05"]) => format!(
                "{error}; a proxy that gives each statement another connection has to know prepared statements \
                 (PgBouncer: max_prepared_statements), or the store is built with prepared_statements(false)"
            ),
            Self::Sql(error) => error.to_string(),
            Self::Unreadable(column) => {
                format!("the column {column} of a record in `{table}` is not what this version writes")
            }
            Self::Refused(words) => words.clone(),
            Self::Unavailable(words) => (*words).to_owned(),
            Self::Contended => format!("a record in `{table}` changed again and again"),
        }
    }
}

impl Clone for Fault {
    /// For those who shared a statement: what they are told is the same, but sqlx's own error has one owner.
    fn clone(&self) -> Self {
        match self {
            Self::Sql(error) if self.kind(false) == StoreErrorKind::Refused => {
                Self::Refused(error.to_string())
            }
            Self::Sql(_) => Self::Unavailable("the statement that was shared with other calls got no answer"),
            Self::Unreadable(column) => Self::Unreadable(column),
            Self::Refused(words) => Self::Refused(words.clone()),
            Self::Unavailable(words) => Self::Unavailable(words),
            Self::Contended => Self::Contended,
        }
    }
}

/// The source of a [`StoreError`] of this store.
#[derive(Debug)]
struct Cause {
    words: String,
    fault: Fault,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            Fault::Sql(error) => Some(error),
            _ => None,
        }
    }
}
