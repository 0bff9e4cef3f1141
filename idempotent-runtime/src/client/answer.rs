//! What an answer means for a request that was sent under a key: its code first, then its status.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::{Response, ResponseBuilderExt};
use serde_json::Value;

use super::vendor::Vendor;

/// As much of an answer is looked into.
const LARGEST: u64 = 64 * 1024;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// This is the answer.
    Final,
    /// Send it again. `in_doubt`: it may have been carried out.
    Again { in_doubt: bool },
    /// The first one is still in progress: send it again, which counts apart.
    InProgress,
    /// The key belongs to another request.
    Reused { resource: Option<String> },
    /// The server itself does not know.
    Unknown,
}

/// An answer, looked at.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) meaning: Meaning,
    pub(super) replayed: bool,
    /// Not before this.
    pub(super) wait: Option<Duration>,
}

/// Looks at an answer. Its content is read only where it may say more than its status, and is still in it afterwards.
pub(super) async fn look(response: Response, vendor: &Vendor) -> Result<Answer, reqwest::Error> {
    let replayed = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
    let wait = retry_after(response.headers());
    let (response, code) =
        if may_have_code(&response) { with_code(response).await? } else { (response, None) };
    let meaning =
        meaning(response.status(), response.headers(), code.as_ref(), replayed, wait.is_some(), vendor);
    Ok(Answer { response, meaning, replayed, wait })
}

fn meaning(
    status: StatusCode,
    headers: &HeaderMap,
    document: Option<&Value>,
    replayed: bool,
    has_wait: bool,
    vendor: &Vendor,
) -> Meaning {
    let of_status = match status.as_u16() {
        // Carried out or not, nobody can say.
        408 | 500 | 502 | 504 => Meaning::Again { in_doubt: true },
        // Refused before anything was done.
        425 | 429 | 503 => Meaning::Again { in_doubt: false },
        409 if has_wait => Meaning::InProgress,
        _ => Meaning::Final,
    };
    if let Some(meaning) = document.and_then(|document| of_code(document, headers)) {
        return meaning;
    }
    match headers.get("stripe-should-retry").filter(|_| vendor.should_retry).map(HeaderValue::as_bytes) {
        Some(b"false") => return Meaning::Final,
        Some(b"true") if status == StatusCode::CONFLICT => return Meaning::InProgress,
        Some(b"true") if of_status == Meaning::Final => return Meaning::Again { in_doubt: false },
        _ => {}
    }
    // A stored error does not change.
    if replayed { Meaning::Final } else { of_status }
}

/// What a code says, where it is one that is known.
fn of_code(document: &Value, headers: &HeaderMap) -> Option<Meaning> {
    let text = |pointer: &str| {
        document.pointer(pointer).and_then(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    let resource = || text("/error/links/conflicting_resource_id").or_else(|| text("/resource_id"));
    let problem_type = text("/type").and_then(|address| address.rsplit(['/', '#']).next().map(str::to_owned));
    let codes = [
        text("/code"),
        text("/error/code"),
        text("/error/type"),
        text("/errorCode"),
        text("/error/errors/0/reason"),
        text("/errors/0/code"),
        problem_type,
    ];
    codes.into_iter().flatten().find_map(|code| match code.as_str() {
        "in-progress" | "idempotency_key_in_use" | "1601" => Some(Meaning::InProgress),
        "704" if headers.get("transient-error").is_some_and(|value| value == "true") => {
            Some(Meaning::InProgress)
        }
        "key-reused"
        | "idempotency_error"
        | "idempotency_key_already_used_error"
        | "idempotent_creation_conflict" => Some(Meaning::Reused { resource: resource() }),
        "outcome-unknown" => Some(Meaning::Unknown),
        "store-unavailable" | "overloaded" | "incomplete-request" => Some(Meaning::Again { in_doubt: false }),
        "result-not-retained" | "missing-key" | "invalid-key" | "payload-too-large" => Some(Meaning::Final),
        _ => None,
    })
}

/// How long the server asks to wait, by a number of seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Only errors have codes, and only small documents of JSON are looked into.
fn may_have_code(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_json = kind.starts_with("application/json") || kind.starts_with("application/problem+json");
    let failed = response.status().is_client_error() || response.status().is_server_error();
    failed && is_json && response.content_length().is_some_and(|length| length <= LARGEST)
}

async fn with_code(response: Response) -> Result<(Response, Option<Value>), reqwest::Error> {
    let (status, version, url) = (response.status(), response.version(), response.url().clone());
    let (headers, extensions) = (response.headers().clone(), response.extensions().clone());
    let content = response.bytes().await?;
    let document = serde_json::from_slice(&content).ok();
    Ok((again(status, version, url, headers, extensions, content), document))
}

/// The response as it was, from its parts.
fn again(
    status: StatusCode,
    version: http::Version,
    url: reqwest::Url,
    headers: HeaderMap,
    extensions: http::Extensions,
    content: Bytes,
) -> Response {
    let mut response = http::Response::new(content);
    // The address of a response is one of its extensions.
    if let Ok(with_url) = http::Response::builder().url(url).body(()) {
        *response.extensions_mut() = with_url.into_parts().0.extensions;
    }
    response.extensions_mut().extend(extensions);
    *response.status_mut() = status;
    *response.version_mut() = version;
    *response.headers_mut() = headers;
    response.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, document: &Value) -> Meaning {
        let status = StatusCode::from_u16(status).expect("three digits");
        meaning(status, &HeaderMap::new(), Some(document), false, false, &Vendor::draft())
    }

    #[test]
    fn a_code_comes_before_the_status() {
        let code = |code: &str| serde_json::json!({ "code": code });
        assert_eq!(of(409, &code("in-progress")), Meaning::InProgress);
        assert_eq!(of(503, &code("key-reused")), Meaning::Reused { resource: None });
        assert_eq!(of(409, &code("outcome-unknown")), Meaning::Unknown);
        assert_eq!(of(422, &code("validation")), Meaning::Final);
        assert_eq!(
            of(400, &serde_json::json!({ "error": { "type": "idempotency_error" } })),
            Meaning::Reused { resource: None }
        );
        assert_eq!(
            of(409, &serde_json::json!({ "error": { "code": "idempotency_key_in_use" } })),
            Meaning::InProgress
        );
        let type_only = serde_json::json!({ "type": "https://api.example/problems#in-progress" });
        assert_eq!(of(409, &type_only), Meaning::InProgress);
    }

    #[test]
    fn no_document_and_no_header_panics() {
        for odd in [
            Value::Null,
            serde_json::json!([]),
            serde_json::json!({ "code": {} }),
            serde_json::json!({ "error": 1 }),
        ] {
            assert_eq!(of(409, &odd), Meaning::Final);
        }
        for value in ["", "-1", "soon", "99999999999999999999999", "Tue, 99 Foo 2026"] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().expect("visible"));
            assert_eq!(retry_after(&headers), None, "{value}");
        }
    }
}
