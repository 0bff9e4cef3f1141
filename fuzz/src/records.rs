//! What stores find under a key: written by this version, by another, or by nobody.

mod mysql;
mod redis;
mod sql;

use idempotent_runtime::key::{KeyParts, OperationName};

/// What is in a record may be anybody's; that it is nobody's must be an error, not a panic.
pub fn redis_record(data: &[u8]) {
    redis::read(data);
}

/// The column of steps: what is read is written as it was.
pub fn mysql_steps(data: &[u8]) {
    mysql::read(data);
}

/// A row of an SQL store, each column by itself.
pub fn sql_row(data: &[u8]) {
    sql::read(data);
}

/// The text of a key: no part gets out of its place, and none is too long.
pub fn record_key(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = KeyParts::new();
    let all: Vec<&str> = text.split('\u{1}').collect();
    all.iter().for_each(|part| parts.part("part", *part));
    let operation = OperationName::from("charge");
    let key = parts.into_key("shop", &operation, None).expect("texts serialize");
    assert!(key.as_str().len() <= 255);
    let shown = key.as_str().strip_prefix("shop/charge/").expect("the names");
    assert!(shown.starts_with('~') || shown.split('/').count() == all.len());
    assert!(!key.as_str().chars().any(|char| char.is_whitespace() || char.is_control()));
}
