//! What is wrong with a store's server, in words: found by asking the server itself.

use std::fmt;

/// Something about a store that breaks the promise of this crate, or weakens it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found, and what follows from it.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The promise holds, unless something else goes wrong as well.
    Weakens,
    /// The promise does not hold: a key may be forgotten while it is needed, or calls cannot work at all.
    Breaks,
}

impl Finding {
    /// A finding that breaks the promise.
    pub fn breaks(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Breaks, problem: problem.into(), remedy: remedy.into() }
    }

    /// A finding that weakens the promise.
    pub fn weakens(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Weakens, problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Weakens => "weakens the promise",
            Severity::Breaks => "breaks the promise",
        };
        write!(f, "{} ({severity}); {}", self.problem, self.remedy)
    }
}
