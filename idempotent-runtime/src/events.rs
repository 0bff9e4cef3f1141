//! What the library tells the application: `tracing` events under the target `idempotent`, and the meters beside them.
//!
//! No argument, result or key is in them, but for the key when [`expose_keys`](crate::IdempotencyBuilder::expose_keys) is
//! set. The table in `docs/operations.md` has them all.

use std::error::Error;
use std::time::Duration;

use tokio::time::Instant;

use crate::call::Call;
use crate::meters::{self, Incident};
use crate::outcome::Outcome;
use crate::store::{Release, StoreError};

macro_rules! event {
    ($level:ident, $call:expr, $message:literal $(, $($field:tt)*)?) => {
        tracing::event!(
            target: "idempotent",
            tracing::Level::$level,
            operation = $call.key.operation().as_str(),
            key = $call.core.settings.expose_keys.then(|| $call.key.as_str()),
            $($($field)*,)?
            $message
        )
    };
}

pub(crate) fn ended(call: &Call, attempt: u32, outcome: Outcome) {
    let name = outcome.as_str();
    meters::called(call.key.operation(), name, Some(call.started));
    if outcome == Outcome::Replayed {
        event!(DEBUG, call, "an earlier attempt was found to be done", attempt, outcome = name, elapsed = ?call.started.elapsed());
    } else if matches!(outcome, Outcome::Unrecorded(_)) {
        event!(WARN, call, "the result of a body is not what its record holds", attempt, outcome = name, elapsed = ?call.started.elapsed());
    } else {
        event!(DEBUG, call, "executed", attempt, outcome = name, elapsed = ?call.started.elapsed());
    }
}

pub(crate) fn replayed(call: &Call, attempt: u32) {
    let outcome = Outcome::Replayed.as_str();
    meters::called(call.key.operation(), outcome, Some(call.started));
    event!(DEBUG, call, "replayed", attempt, outcome, elapsed = ?call.started.elapsed());
}

/// A call, if it is known since when, got an error of this crate.
pub(crate) fn refused(error: &crate::Error, started: Option<Instant>) {
    let operation = error.operation();
    meters::called(operation.unwrap_or_default(), error.code(), started);
    let elapsed = started.map(|started| tracing::field::debug(started.elapsed()));
    tracing::info!(target: "idempotent", operation, outcome = error.code(), elapsed, "refused");
}

pub(crate) fn taken_over(call: &Call, attempt: u32) {
    meters::happened(call.key.operation(), Incident::TakenOver);
    event!(WARN, call, "took over from an attempt that gave no answer", attempt);
}

pub(crate) fn dropped(call: &Call, attempt: u32, how: Release) {
    match how {
        Release::Abandon => {
            meters::called(call.key.operation(), "dropped", Some(call.started));
            event!(WARN, call, "a body was dropped, or panicked, before its end", attempt, outcome = "dropped", elapsed = ?call.started.elapsed());
        }
        Release::Forget | Release::Unused => {
            meters::happened(call.key.operation(), Incident::GivenBack);
            event!(DEBUG, call, "a reservation was given back unused", attempt, outcome = "given-back", elapsed = ?call.started.elapsed());
        }
    }
}

pub(crate) fn not_given_back(call: &Call) {
    meters::happened(call.key.operation(), Incident::LeftToItsLease);
    event!(WARN, call, "a key is left to the end of its lease: too many wait to be given back already");
}

pub(crate) fn renewal_late(call: &Call, attempt: u32, by: Duration) {
    meters::happened(call.key.operation(), Incident::RenewalLate);
    event!(WARN, call, "a renewal is late: something blocks the threads of the runtime", attempt, by = ?by);
}

pub(crate) fn lease_lost(call: &Call, attempt: u32) {
    meters::happened(call.key.operation(), Incident::LeaseLost);
    event!(WARN, call, "another attempt has taken over from a body that is still running", attempt);
}

pub(crate) fn lease_unconfirmed(call: &Call, attempt: u32) {
    meters::happened(call.key.operation(), Incident::LeaseLost);
    event!(
        WARN,
        call,
        "the store has not confirmed the lease of a running body for its whole length",
        attempt
    );
}

pub(crate) fn cancelled(call: &Call, attempt: u32) {
    event!(WARN, call, "a body was cancelled, because its lease is lost", attempt);
}

pub(crate) fn max_run_over(call: &Call, attempt: u32) {
    meters::happened(call.key.operation(), Incident::MaxRunOver);
    event!(WARN, call, "a body runs for longer than `max_run`: its lease is not renewed any more", attempt);
}

pub(crate) fn not_recorded(call: &Call, attempt: u32, error: &StoreError) {
    meters::happened(call.key.operation(), Incident::NotRecorded);
    event!(ERROR, call, "gave up recording how a body ended", attempt, error = source(error));
}

pub(crate) fn not_serializable(call: &Call, error: &(dyn Error + Send + Sync + 'static)) {
    meters::happened(call.key.operation(), Incident::NotSerializable);
    event!(ERROR, call, "a result could not be serialized", error = plain(error));
}

/// The two coercions to the form that an event takes.
fn source<'a>(error: &'a StoreError) -> &'a (dyn Error + 'static) {
    error
}
fn plain<'a>(error: &'a (dyn Error + Send + Sync + 'static)) -> &'a (dyn Error + 'static) {
    error
}

pub(crate) fn unreadable(call: &Call, reason: &str) {
    meters::happened(call.key.operation(), Incident::Unreadable);
    event!(ERROR, call, "a stored result cannot be read", reason);
}

/// A body is about to run unprotected, and that is worth a warning.
pub(crate) fn unprotected(operation: &str, reason: &str) {
    tracing::warn!(target: "idempotent", operation, reason, "a body runs unprotected");
}

/// A body has run unprotected.
pub(crate) fn ended_unprotected(operation: &str, started: Instant) {
    let outcome = Outcome::Unprotected.as_str();
    meters::called(operation, outcome, Some(started));
    tracing::debug!(target: "idempotent", operation, outcome, elapsed = ?started.elapsed(), "executed unprotected");
}

pub(crate) fn purged(records: usize) {
    meters::purged(records);
    tracing::debug!(target: "idempotent", records, "expired records are purged");
}

pub(crate) fn not_purged(error: &StoreError) {
    meters::purge_failed("error");
    tracing::warn!(target: "idempotent", error = source(error), "expired records could not be purged");
}

pub(crate) fn not_purged_in_time() {
    meters::purge_failed("no-answer");
    tracing::warn!(target: "idempotent", "expired records could not be purged in time");
}
