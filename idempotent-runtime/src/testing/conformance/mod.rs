//! A suite that tells whether a store keeps the promises of [`crate::store`].
//!
//! One line runs every check and, if any failed, panics with all of them: the name of the check, what was expected
//! and what was seen.
//!
//! ```
//! use idempotent_runtime::stores::MemoryStore;
//! use idempotent_runtime::testing::{ManualClock, conformance::{self, Subject}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let clock = ManualClock::default();
//! let store = MemoryStore::builder().clock(clock.clone()).build();
//! conformance::run(Subject::new(store).clock(clock)).await;
//! # }
//! ```
//!
//! A store that goes by a server's clock is given as it is, `conformance::run(MyStore::connect(url).await?).await`; the
//! suite then uses short spans and waits until they are really over. The suite uses keys and operations of its own, so
//! the store need not be empty, and several suites may run on one database at the same time.
//!
//! It needs a tokio runtime. In a multi-threaded one the races are real.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::ManualClock;
use crate::store::Store;
use bench::{Bench, Checked};

mod bench;
mod completing;
mod content;
mod expiring;
mod listing;
mod operating;
mod owning;
mod races;
mod releasing;
mod reserving;
mod spans;
mod steps;
mod take_over;
mod watching;

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Advance = Arc<dyn Fn(Duration) -> Pending<()> + Send + Sync>;

/// One promise, and the code that tries it.
struct Check {
    name: &'static str,
    run: fn(Bench) -> Pending<Checked>,
}

/// Makes a list of [`Check`]s from functions; each is called by its file and its name.
macro_rules! checks {
    ($topic:literal: $($check:ident),+ $(,)?) => {
        pub(super) const CHECKS: &[super::Check] = &[$(super::Check {
            name: concat!($topic, "::", stringify!($check)),
            run: |bench| Box::pin(async move { $check(&bench).await }),
        }),+];
    };
}
use checks;

const TOPICS: &[&[Check]] = &[
    reserving::CHECKS,
    take_over::CHECKS,
    owning::CHECKS,
    completing::CHECKS,
    releasing::CHECKS,
    steps::CHECKS,
    expiring::CHECKS,
    spans::CHECKS,
    operating::CHECKS,
    listing::CHECKS,
    content::CHECKS,
    races::CHECKS,
    watching::CHECKS,
];

/// The store under test, and how time passes for it.
pub struct Subject {
    store: Arc<dyn Store>,
    advance: Advance,
    tick: Duration,
    skipped: Vec<(String, String)>,
}

impl Subject {
    /// A store for which time passes by itself: the suite sleeps, on tokio's clock, for as long as a span must last.
    pub fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            advance: Arc::new(|by| Box::pin(tokio::time::sleep(by))),
            tick: Duration::from_millis(50),
            skipped: Vec::new(),
        }
    }

    /// The store goes by this clock, which the suite then moves instead of sleeping.
    #[must_use]
    pub fn clock(self, clock: ManualClock) -> Self {
        self.advance_with(move |by| {
            clock.advance(by);
            std::future::ready(())
        })
    }

    /// How to let time pass for the store, when it is neither real time nor a [`ManualClock`].
    #[must_use]
    pub fn advance_with<F>(mut self, advance: impl Fn(Duration) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.advance = Arc::new(move |by| Box::pin(advance(by)));
        self
    }

    /// How long a call may take without disturbing a check, 50 ms by default. Every short span of the suite is a few
    /// of these; make it longer for a store far away.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// Leaves out the checks whose name is, or starts with, `name`, and says why in the report.
    #[must_use]
    pub fn skip(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.skipped.push((name.into(), reason.into()));
        self
    }
}

impl<S: Store> From<S> for Subject {
    fn from(store: S) -> Self {
        Self::new(store)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("store", &self.store)
            .field("tick", &self.tick)
            .finish_non_exhaustive()
    }
}

/// What the suite found.
#[derive(Clone, Debug, Default)]
#[must_use = "a report that nobody looks at tests nothing"]
pub struct Report {
    /// The name of the store.
    pub store: String,
    /// The checks that passed.
    pub passed: Vec<&'static str>,
    /// The checks that failed, each with what was expected and what was seen.
    pub failed: Vec<(&'static str, String)>,
    /// The checks that were left out, each with the reason.
    pub skipped: Vec<(&'static str, String)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} store: {} checks passed, {} failed, {} left out",
            self.store,
            self.passed.len(),
            self.failed.len(),
            self.skipped.len()
        )?;
        self.failed.iter().try_for_each(|(name, why)| write!(f, "\n  failed {name}: {why}"))?;
        self.skipped.iter().try_for_each(|(name, why)| write!(f, "\n  left out {name}: {why}"))
    }
}

/// Runs every check.
///
/// # Panics
/// When a check failed, with the whole [`Report`].
pub async fn run(subject: impl Into<Subject>) {
    let report = report(subject).await;
    assert!(report.failed.is_empty(), "{report}");
}

/// Runs every check and says what it found.
pub async fn report(subject: impl Into<Subject>) -> Report {
    let subject = subject.into();
    let mut report = Report { store: subject.store.name().to_owned(), ..Report::default() };
    for check in TOPICS.iter().copied().flatten() {
        if let Some((_, reason)) = subject.skipped.iter().find(|(name, _)| check.name.starts_with(&**name)) {
            report.skipped.push((check.name, reason.clone()));
            continue;
        }
        let bench = Bench::new(Arc::clone(&subject.store), Arc::clone(&subject.advance), subject.tick);
        // On a task of its own, so that a store that panics fails one check and not the report.
        match tokio::spawn((check.run)(bench)).await {
            Ok(Ok(())) => report.passed.push(check.name),
            Ok(Err(failure)) => report.failed.push((check.name, failure.to_string())),
            Err(error) => report.failed.push((check.name, error.to_string())),
        }
    }
    report
}

/// The names of all checks, in the order in which they run.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().copied().flatten().map(|check| check.name)
}
