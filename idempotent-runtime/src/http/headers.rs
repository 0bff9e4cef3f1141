//! Which headers of a response are stored with it.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Headers that belong to one exchange, and not to the result: they are made anew for a replay, or left to outer layers.
const OF_ONE_EXCHANGE: &[&str] = &[
    // RFC 9110, section 7.6.1: between two neighbours only.
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // Of this message: when it was made (RFC 9110, section 6.6.1), and how long it is.
    "date",
    "content-length",
    // Whoever retries may not be who was given the session.
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "proxy-authenticate",
    "authentication-info",
    "proxy-authentication-info",
    // Of the way the message took.
    "age",
    "via",
    "server",
    "server-timing",
    "alt-svc",
    "strict-transport-security",
    // Of the other request.
    "retry-after",
    "x-request-id",
    "traceparent",
    "tracestate",
];

/// And all that begin so.
const OF_ONE_EXCHANGE_PREFIXES: &[&str] = &["access-control-", "ratelimit", "x-ratelimit"];

/// The application's own exceptions.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptHeaders {
    pub(super) kept: HashSet<HeaderName>,
    pub(super) dropped: HashSet<HeaderName>,
}

impl KeptHeaders {
    /// The headers to store, in their order, each as often as it is there.
    pub(super) fn of<'h>(
        &self,
        headers: &'h HeaderMap,
    ) -> impl Iterator<Item = (&'h HeaderName, &'h HeaderValue)> {
        let named = named_in_connection(headers);
        headers.iter().filter(move |(name, _)| !named.contains(name.as_str()) && self.keeps(name))
    }

    fn keeps(&self, name: &HeaderName) -> bool {
        if self.dropped.contains(name) {
            return false;
        }
        let text = name.as_str();
        self.kept.contains(name)
            || (!OF_ONE_EXCHANGE.contains(&text)
                && !OF_ONE_EXCHANGE_PREFIXES.iter().any(|prefix| text.starts_with(prefix)))
    }
}

/// What `Connection` names is between two neighbours as well.
fn named_in_connection(headers: &HeaderMap) -> HashSet<String> {
    let values = headers.get_all(http::header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}
