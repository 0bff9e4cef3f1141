//! What Redis's errors mean for the one who asked.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::store::{StoreError, StoreErrorKind};

/// The error for a caller. `makes_record`: whether the operation would have added a record.
pub(super) fn error(error: RedisError, makes_record: bool) -> StoreError {
    let kind = kind(&error, makes_record);
    StoreError::new(super::NAME, kind, error)
}

/// The error about a record that this version cannot read.
pub(super) fn unreadable(what: &'static str) -> StoreError {
    let words = format!("the {what} of the record is not what this version writes");
    StoreError::new(super::NAME, StoreErrorKind::Unreadable, words)
}

/// The error about an answer that no script of this version gives.
pub(super) fn unexpected(answer: &redis::Value) -> StoreError {
    let what = match answer {
        redis::Value::Int(-2) => return unreadable("format"),
        redis::Value::Nil => "nothing",
        redis::Value::Int(_) => "a number",
        redis::Value::Array(_) => "a list",
        _ => "something else",
    };
    let words = format!("the server answered with {what}, which is not an answer to this request");
    StoreError::new(super::NAME, StoreErrorKind::Unavailable, words)
}

pub(super) fn kind(error: &RedisError, makes_record: bool) -> StoreErrorKind {
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::ResponseError) => of_words(&error.to_string(), makes_record),
        ErrorKind::Server(ServerErrorKind::NoPerm | ServerErrorKind::CrossSlot | ServerErrorKind::NoSub)
        | ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::EmptySentinelList
        | ErrorKind::RESP3NotSupported => StoreErrorKind::Refused,
        ErrorKind::Extension => match error.code() {
            Some("OOM") => full(makes_record),
            Some("WRONGTYPE") => StoreErrorKind::Unreadable,
            Some("NOAUTH" | "WRONGPASS" | "DENIED") => StoreErrorKind::Refused,
            // MISCONF, NOREPLICAS, BUSY and what else passes.
            _ => StoreErrorKind::Unavailable,
        },
        // Io, LOADING, MOVED, ASK, TRYAGAIN, CLUSTERDOWN, MASTERDOWN, READONLY and the like.
        _ => StoreErrorKind::Unavailable,
    }
}

/// No room for a new record. What belongs to an existing one is worth asking for again.
fn full(makes_record: bool) -> StoreErrorKind {
    if makes_record { StoreErrorKind::Full } else { StoreErrorKind::Unavailable }
}

/// Older servers put an error inside a script into words of their own.
fn of_words(words: &str, makes_record: bool) -> StoreErrorKind {
    let says = |what| words.contains(what);
    if says("WRONGTYPE") || says("attempt to ") {
        StoreErrorKind::Unreadable
    } else if says("OOM ") {
        full(makes_record)
    } else if ["READONLY", "LOADING", "MISCONF", "NOREPLICAS", "max number of clients"].into_iter().any(says)
    {
        StoreErrorKind::Unavailable
    } else {
        StoreErrorKind::Refused
    }
}
