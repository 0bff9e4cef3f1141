//! What operators write into an environment variable.

#[path = "../../idempotent-runtime/src/stores/redis/url.rs"]
mod redis_address;

/// A URL of Redis. An error does not show it, because it may hold a password.
pub fn redis_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // What stands before the last `@`, where it is long enough not to be in the error's own words.
    let authority = text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let secret = authority.rsplit_once('@').map_or("", |(secret, _)| secret);
    if let Err(error) = redis_address::parse(text) {
        let shown = format!("{error} {error:?}");
        assert!(secret.len() < 12 || !shown.contains(secret), "{shown}");
    }
}
