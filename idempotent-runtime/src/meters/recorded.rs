//! The meters at work. Labels are names of operations and outcomes, of which a program has few; never a key, an argument or
//! a result.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use tokio::time::Instant;

use super::Incident;
use crate::store::{StoreErrorKind, StoreResult};

const CALLS: &str = "idempotent_calls_total";
const CALL_SECONDS: &str = "idempotent_call_seconds";
const BODY_SECONDS: &str = "idempotent_body_seconds";
const INCIDENTS: &str = "idempotent_incidents_total";
const STORE_SECONDS: &str = "idempotent_store_seconds";
const STORE_ERRORS: &str = "idempotent_store_errors_total";
const BACKGROUND: &str = "idempotent_background_tasks";
const WAITING: &str = "idempotent_waiting_calls";
const WAIT_SECONDS: &str = "idempotent_wait_seconds";
const PURGED: &str = "idempotent_purged_records_total";
const PURGE_FAILURES: &str = "idempotent_purge_failures_total";

/// Tells the recorder of the `metrics` crate the units and meanings of this crate's metrics.
///
/// Making a handle does that too. Call this where the recorder is installed after the first handle is made.
pub fn describe_metrics() {
    describe_counter!(CALLS, Unit::Count, "calls, by how they came to their result or why they got none");
    describe_histogram!(CALL_SECONDS, Unit::Seconds, "from the arguments of a call to its result");
    describe_histogram!(
        BODY_SECONDS,
        Unit::Seconds,
        "how long protected bodies ran, until they ended or were dropped"
    );
    describe_counter!(INCIDENTS, Unit::Count, "what happened beside the outcomes of calls");
    describe_histogram!(STORE_SECONDS, Unit::Seconds, "one try of one store operation");
    describe_counter!(
        STORE_ERRORS,
        Unit::Count,
        "tries of store operations that gave an error, or no answer"
    );
    describe_gauge!(BACKGROUND, Unit::Count, "store calls and detached bodies that go on without a caller");
    describe_gauge!(WAITING, Unit::Count, "duplicates that wait for the result of another call");
    describe_histogram!(WAIT_SECONDS, Unit::Seconds, "how long duplicates waited, each time they did");
    describe_counter!(PURGED, Unit::Count, "expired records that `purge_every` deleted");
    describe_counter!(PURGE_FAILURES, Unit::Count, "turns of `purge_every` that the store ended");
}

/// A call came to its outcome.
pub(crate) fn called(operation: &str, outcome: &'static str, started: Option<Instant>) {
    counter!(CALLS, "operation" => operation.to_owned(), "outcome" => outcome).increment(1);
    if let Some(started) = started {
        histogram!(CALL_SECONDS, "operation" => operation.to_owned(), "outcome" => outcome)
            .record(started.elapsed());
    }
}

pub(crate) fn happened(operation: &str, incident: Incident) {
    counter!(INCIDENTS, "operation" => operation.to_owned(), "outcome" => incident.as_str()).increment(1);
}

pub(crate) fn purged(records: usize) {
    counter!(PURGED).increment(u64::try_from(records).unwrap_or(u64::MAX));
}

pub(crate) fn purge_failed(outcome: &'static str) {
    counter!(PURGE_FAILURES, "outcome" => outcome).increment(1);
}

/// One try of a store operation. Dropped before its answer, it counts as one without an answer.
#[derive(Debug)]
pub(crate) struct StoreCall {
    operation: &'static str,
    began: Instant,
    answered: bool,
}

impl StoreCall {
    pub(crate) fn begin(operation: &'static str) -> Self {
        Self { operation, began: Instant::now(), answered: false }
    }

    pub(crate) fn answered<T>(mut self, answer: &StoreResult<T>) {
        self.answered = true;
        self.over(match answer {
            Ok(_) => "ok",
            Err(error) => match error.kind() {
                StoreErrorKind::Unavailable => "unavailable",
                StoreErrorKind::Refused => "refused",
                StoreErrorKind::Full => "full",
                StoreErrorKind::Unreadable => "unreadable",
            },
        });
    }

    fn over(&self, outcome: &'static str) {
        histogram!(STORE_SECONDS, "operation" => self.operation, "outcome" => outcome)
            .record(self.began.elapsed());
        if outcome != "ok" {
            counter!(STORE_ERRORS, "operation" => self.operation, "outcome" => outcome).increment(1);
        }
    }
}

impl Drop for StoreCall {
    fn drop(&mut self) {
        if !self.answered {
            self.over("no-answer");
        }
    }
}

/// How long a body runs.
#[derive(Debug)]
pub(crate) struct Body(Option<Instant>);

impl Body {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    pub(crate) fn polling(&mut self) {
        self.0.get_or_insert_with(Instant::now);
    }

    pub(crate) fn over(&self, operation: &str, outcome: &'static str) {
        let ran = self.0.map_or(Duration::ZERO, |began| began.elapsed());
        histogram!(BODY_SECONDS, "operation" => operation.to_owned(), "outcome" => outcome).record(ran);
    }
}

/// Something that goes on in the background, for as long as it does.
#[derive(Debug)]
pub(crate) struct BackgroundTask(metrics::Gauge);

impl BackgroundTask {
    pub(crate) fn begin() -> Self {
        let gauge = gauge!(BACKGROUND);
        gauge.increment(1.0);
        Self(gauge)
    }

    /// Also what happens when it is dropped before.
    pub(crate) fn end(self) {
        drop(self);
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// A call that waits. Dropped before it is over, its caller has gone away.
#[derive(Debug)]
pub(crate) struct Wait {
    operation: String,
    began: Instant,
    waiting: metrics::Gauge,
    outcome: &'static str,
}

impl Wait {
    pub(crate) fn begin(operation: &str) -> Self {
        let waiting = gauge!(WAITING, "operation" => operation.to_owned());
        waiting.increment(1.0);
        Self { operation: operation.to_owned(), began: Instant::now(), waiting, outcome: "dropped" }
    }

    pub(crate) fn over(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.waiting.decrement(1.0);
        let operation = std::mem::take(&mut self.operation);
        histogram!(WAIT_SECONDS, "operation" => operation, "outcome" => self.outcome)
            .record(self.began.elapsed());
    }
}
