//! The kinds of call in the traffic. A key says in its first word which kind it is of: `retry-3-17` is the 17th of process 3.

/// What a body does, and under which policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// One effect, `on_crash = "refuse"`.
    Refuse,
    /// One effect, `on_crash = "retry"`.
    Retry,
    /// One effect after `begin_effects()`, `on_crash = "retry_before_effects"`.
    Marked,
    /// Two steps, `on_crash = "refuse"`.
    Steps,
    /// Two steps, `on_crash = "retry"`.
    Resteps,
    /// One effect; after a crash the ledger is asked whether it happened.
    Asked,
    /// As `Refuse`, but every other attempt returns an `Err` before its effect, which releases the key.
    Failing,
    /// As `Refuse`, for so long that the lease is renewed.
    Slow,
    /// As `Retry`, for so long that the lease is renewed.
    SlowRetry,
}

impl Mode {
    pub(crate) const ALL: [Self; 9] = [
        Self::Refuse,
        Self::Retry,
        Self::Marked,
        Self::Steps,
        Self::Resteps,
        Self::Asked,
        Self::Failing,
        Self::Slow,
        Self::SlowRetry,
    ];

    /// Whether an attempt that gave no answer is followed by another one, whatever it did.
    pub(crate) fn always_ends(self) -> bool {
        matches!(self, Self::Retry | Self::Resteps | Self::Asked | Self::SlowRetry)
    }

    /// Whether each effect happens once at most.
    pub(crate) fn at_most_once(self) -> bool {
        !matches!(self, Self::Retry | Self::Resteps | Self::SlowRetry)
    }

    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::Slow | Self::SlowRetry)
    }

    pub(crate) fn has_steps(self) -> bool {
        matches!(self, Self::Steps | Self::Resteps)
    }

    /// The kind of a key.
    pub(crate) fn of(key: &str) -> Self {
        let word = key.split('-').next().unwrap();
        Self::ALL.into_iter().find(|mode| mode.word() == word).expect(key)
    }

    pub(crate) fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn key(self, process: u32, n: u32) -> String {
        format!("{}-{process}-{n}", self.word())
    }
}
