//! Why a store did not do what it was asked.

use std::fmt;

#[cfg(doc)]
use super::Store;

/// Why a store did not do what it was asked.
///
/// `Display` says the cause as well, which is also the source: whoever opens a store mostly prints no more than that.
#[derive(Debug)]
pub struct StoreError {
    store: &'static str,
    kind: StoreErrorKind,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// What a store error means for the one who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The answer did not arrive, or the store is busy or away. The write may have happened; the protocol asks again
    /// with the same token. A panic of the store counts as this.
    Unavailable,
    /// The store refused, nothing was written, and asking again will not help: a missing table or permission.
    Refused,
    /// The store has no room for another record. Nothing was written.
    Full,
    /// What is stored under the key is not a record that this version can read. It was left as it is.
    Unreadable,
}

impl StoreError {
    /// An error of the store called `store`.
    pub fn new(
        store: &'static str,
        kind: StoreErrorKind,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { store, kind, source: source.into() }
    }

    /// What it means for the one who asked.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.kind == StoreErrorKind::Unavailable
    }

    /// The name of the store and what it means, without the cause.
    pub(crate) fn summary(&self) -> String {
        let what = match self.kind {
            StoreErrorKind::Unavailable => "did not answer",
            StoreErrorKind::Refused => "refused",
            StoreErrorKind::Full => "is full",
            StoreErrorKind::Unreadable => "holds a record that cannot be read",
        };
        format!("the {} store {what}", self.store)
    }

    /// The name of the store.
    pub fn store(&self) -> &'static str {
        self.store
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.summary(), self.source)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
