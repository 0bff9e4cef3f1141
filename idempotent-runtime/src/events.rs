//! What the library tells the application's log: `tracing` events under the target `idempotent`.
//!
//! No argument, result or key is in them, but for the key when [`expose_keys`](crate::IdempotencyBuilder::expose_keys) is
//! set.

use std::error::Error;
use std::time::Duration;

use crate::call::Call;
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
    if let Outcome::Unrecorded(reason) = outcome {
        event!(WARN, call, "the result of a body is not what its record holds", attempt, reason = ?reason);
    } else {
        event!(DEBUG, call, "executed", attempt);
    }
}

pub(crate) fn replayed(call: &Call, attempt: u32) {
    event!(DEBUG, call, "replayed", attempt);
}

pub(crate) fn refused(error: &crate::Error) {
    let operation = error.operation();
    tracing::info!(target: "idempotent", operation, code = error.code(), "refused");
}

pub(crate) fn taken_over(call: &Call, attempt: u32) {
    event!(WARN, call, "took over from an attempt that gave no answer", attempt);
}

pub(crate) fn dropped(call: &Call, how: Release) {
    match how {
        Release::Abandon => event!(WARN, call, "a body was dropped, or panicked, before its end"),
        Release::Forget | Release::Unused => event!(DEBUG, call, "a reservation was given back unused"),
    }
}

pub(crate) fn not_given_back(call: &Call) {
    event!(WARN, call, "a key is left to the end of its lease: too many wait to be given back already");
}

pub(crate) fn renewal_late(call: &Call, by: Duration) {
    event!(WARN, call, "a renewal is late: something blocks the threads of the runtime", by = ?by);
}

pub(crate) fn lease_lost(call: &Call) {
    event!(WARN, call, "another attempt has taken over from a body that is still running");
}

pub(crate) fn max_run_over(call: &Call) {
    event!(WARN, call, "a body runs for longer than `max_run`: its lease is not renewed any more");
}

pub(crate) fn not_recorded(call: &Call, error: &StoreError) {
    event!(ERROR, call, "gave up recording how a body ended", error = source(error));
}

pub(crate) fn not_serializable(call: &Call, error: &(dyn Error + Send + Sync + 'static)) {
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
    event!(ERROR, call, "a stored result cannot be read", reason);
}

pub(crate) fn unprotected(operation: &str, reason: &str) {
    tracing::warn!(target: "idempotent", operation, reason, "a body runs unprotected");
}
