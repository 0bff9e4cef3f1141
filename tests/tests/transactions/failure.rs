//! The error of the functions in these tests.

use std::sync::Arc;

use idempotent_runtime::Error;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    Declined,
    Database(#[serde(skip)] Cause),
    Idempotency(String),
}

impl Failure {
    /// An error of the crate with this code; `, retryable` at its end says that it is.
    pub(crate) fn code<T>(code: &str) -> Result<T, Self> {
        Err(Self::Idempotency(code.to_owned()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let retryable = if error.is_retryable() { ", retryable" } else { "" };
        Self::Idempotency(format!("{}{retryable}", error.code()))
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Cause(Some(Arc::new(error))))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failure {
    /// Without it nobody could see that another transaction would be worth it.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let Self::Database(Cause(Some(error))) = self else { return None };
        Some(&**error)
    }
}

/// The database's own error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause(Option<Arc<sqlx::Error>>);

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

impl Eq for Cause {}
