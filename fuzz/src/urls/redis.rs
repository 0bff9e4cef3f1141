//! The address of a Redis server.

#[path = "../../../idempotent-runtime/src/stores/redis/url.rs"]
mod url;

/// Reads a URL; an error, if it is none.
pub(super) fn parse(text: &str) -> Result<(), redis::RedisError> {
    url::parse(text).map(drop)
}
