//! What operators write into an environment variable.

mod dynamodb;
mod redis;
mod sqlite;

/// A URL of a table or of a file.
pub fn store_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    dynamodb::read(text);
    sqlite::read(text);
    unknown(text);
}

/// With no store compiled in, every URL is one that cannot be opened. What stands before the colon is shown, or nobody would
/// know what was wrong; of the rest nothing is.
fn unknown(text: &str) {
    let Some((scheme, _)) = text.split_once(':') else { return };
    assert_eq!(refused(text), refused(&format!("{scheme}:")));
}

fn refused(url: &str) -> String {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut opening = std::pin::pin!(idempotent_runtime::stores::open(url));
    let std::task::Poll::Ready(opened) = opening.as_mut().poll(&mut context) else {
        panic!("there is nothing to wait for");
    };
    opened.expect_err("there is no store").to_string()
}

/// A URL of Redis. An error does not show it, because it may hold a password.
pub fn redis_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // What stands before the last `@`, where it is long enough not to be in the error's own words.
    let authority = text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let secret = authority.rsplit_once('@').map_or("", |(secret, _)| secret);
    if let Err(error) = redis::parse(text) {
        let shown = format!("{error} {error:?}");
        assert!(secret.len() < 12 || !shown.contains(secret), "{shown}");
    }
}
