//! What a call did, for those who ask.

/// How a call came to its result; see [`with_outcome`](crate::with_outcome).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The body ran, and what it gave is recorded as its `on_error` says.
    Executed,
    /// The result of an earlier call was given; the body did not run.
    Replayed,
    /// The body ran and its caller has its value, but that value is not what the record holds.
    Unrecorded(Unrecorded),
    /// The body ran without protection: the handle is disabled, or the key was missing and `on_missing_key = "run"`.
    Unprotected,
}

impl Outcome {
    /// As it stands in events and metrics: lower case, words joined by hyphens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::Unrecorded(Unrecorded::StoreFailed) => "unrecorded-store-failed",
            Self::Unrecorded(Unrecorded::LeaseLost) => "unrecorded-lease-lost",
            Self::Unrecorded(Unrecorded::TooLarge) => "unrecorded-too-large",
            Self::Unrecorded(Unrecorded::NotSerializable) => "unrecorded-not-serializable",
            Self::Unprotected => "unprotected",
        }
    }
}

/// Why a body's own result is not what its record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unrecorded {
    /// The store did not confirm in time. The library goes on trying in the background.
    StoreFailed,
    /// Another attempt, or an operator, had taken the key: what they settle is what duplicates get.
    LeaseLost,
    /// The result is larger than the handle or the store allows. Duplicates get
    /// [`NotRetained`](crate::Error::NotRetained).
    TooLarge,
    /// The result could not be serialized, or the codec refused it. Duplicates get
    /// [`NotRetained`](crate::Error::NotRetained).
    NotSerializable,
}
