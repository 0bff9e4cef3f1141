//! What the layer itself answers: problem documents as RFC 9457 has them.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::error::Error;

/// Where the types of the problems are explained.
pub(super) const TYPES: &str = "https://github.com/idempotent-rs/idempotent/blob/main/docs/http.md#";

/// An answer of the layer in place of the handler's. Its texts are fixed: nothing of a request, of another client, or of
/// the store is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    status: StatusCode,
    title: &'static str,
    detail: &'static str,
    retryable: bool,
    /// In seconds.
    retry_after: Option<u64>,
}

/// The members of the document.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    retryable: bool,
}

macro_rules! problems {
    ($($name:ident = $code:literal, $status:ident, $title:literal, retryable: $retryable:literal, $detail:literal;)*) => {
        $(pub(super) const $name: Self = Self {
            code: $code,
            status: StatusCode::$status,
            title: $title,
            detail: $detail,
            retryable: $retryable,
            retry_after: None,
        };)*

        /// All of them, for the published policy.
        pub(super) const ALL: &[Self] = &[$(Self::$name),*];
    };
}

impl Problem {
    problems! {
        MISSING_KEY = "missing-key", BAD_REQUEST, "Idempotency-Key is missing", retryable: false,
            "This operation needs the header Idempotency-Key. Choose a key, and send it again with every retry.";
        INVALID_KEY = "invalid-key", BAD_REQUEST, "Idempotency-Key is invalid", retryable: false,
            "The header has to be there once, with a key of the published syntax and length.";
        KEY_REUSED = "key-reused", UNPROCESSABLE_ENTITY, "Idempotency-Key is already used", retryable: false,
            "This key was used with another request. Use a new key for a new request.";
        IN_PROGRESS = "in-progress", CONFLICT,
            "A request is outstanding for this Idempotency-Key", retryable: true,
            "The first request with this key is still being processed. Send this one again later, unchanged.";
        TOO_LARGE = "payload-too-large", PAYLOAD_TOO_LARGE, "Request content is too large", retryable: false,
            "A request with an Idempotency-Key may not be larger than the published limit.";
        INCOMPLETE = "incomplete-request", BAD_REQUEST, "Request content could not be read", retryable: true,
            "The content of the request ended early. Nothing has happened. Send it again.";
        STORE_UNAVAILABLE = "store-unavailable", SERVICE_UNAVAILABLE,
            "Idempotency store is unavailable", retryable: true,
            "Nothing has happened, because it could not be made sure that it happens once. Send it again later.";
        UNREADABLE = "store-unavailable", SERVICE_UNAVAILABLE, "Idempotency store is unavailable", retryable: true,
            "The stored response of the first request cannot be read at present.";
        OVERLOADED = "overloaded", SERVICE_UNAVAILABLE, "Too many requests are being processed", retryable: true,
            "Nothing has happened. Send it again later.";
        OUTCOME_UNKNOWN = "outcome-unknown", CONFLICT,
            "The outcome of the original request is unknown", retryable: false,
            "The first request with this key did not come to its end, and may have had an effect. Find out before you \
             use a new key.";
        NOT_RETAINED = "result-not-retained", CONFLICT, "The original result was not retained", retryable: false,
            "The first request with this key was processed, but its response could not be kept.";
        UNIDENTIFIED = "principal-missing", UNAUTHORIZED, "It is not known who sent the request", retryable: false,
            "A request with an Idempotency-Key has to say on whose behalf it is made.";
        MISCONFIGURED = "misconfigured", INTERNAL_SERVER_ERROR, "The request could not be protected", retryable: false,
            "Nothing has happened. The operator of the service has to look at it.";
    }

    /// The same with `Retry-After`, in whole seconds, at least one.
    pub(super) fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait.as_secs().max(1));
        self
    }

    /// As a response. `types` is where the types are explained, `docs` where the policy is published.
    pub(super) fn response<B: From<Bytes>>(self, types: &str, docs: Option<&HeaderValue>) -> Response<B> {
        let document = Document {
            r#type: format!("{types}{}", self.code),
            title: self.title,
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code,
            retryable: self.retryable,
        };
        // Texts and numbers cannot fail to serialize; an empty document would still have its status.
        let bytes = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = Response::new(B::from(bytes.into()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(docs) = docs.filter(|_| self.code == Self::MISSING_KEY.code) {
            headers.insert(LINK, docs.clone());
        }
        response
    }

    pub(super) fn status(self) -> StatusCode {
        self.status
    }
    pub(super) fn title(self) -> &'static str {
        self.title
    }
    pub(super) fn is_retryable(self) -> bool {
        self.retryable
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        match error {
            Error::InProgress { retry_after, .. } => Self::IN_PROGRESS.after(*retry_after),
            Error::KeyReused { .. } => Self::KEY_REUSED,
            Error::OutcomeUnknown { .. } | Error::LeaseLost { .. } => Self::OUTCOME_UNKNOWN,
            Error::NotRetained { .. } => Self::NOT_RETAINED,
            Error::MissingKey { .. } => Self::MISSING_KEY,
            Error::Store { .. } => Self::STORE_UNAVAILABLE.after(Duration::from_secs(1)),
            Error::Unreadable { .. } => Self::UNREADABLE.after(Duration::from_secs(1)),
            _ => Self::MISCONFIGURED,
        }
    }
}
