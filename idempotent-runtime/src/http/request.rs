//! Which record a request belongs to, and what has to be the same in its retry.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};

use super::config::{Config, KeyScope};
use super::content::Content;
use super::key::IdempotencyKey;
use super::principal::Scope;
use crate::prepared::Prepared;

/// What has to be the same in a retry. Whatever differs else, such as `User-Agent` or a refreshed token, does not matter.
#[derive(Clone, Default)]
pub struct Compared(By);

#[derive(Clone)]
enum By {
    Whole(BTreeSet<String>),
    Nothing,
    Own(Own),
}

type Own = Arc<dyn Fn(&Parts, &[u8]) -> Vec<u8> + Send + Sync>;

impl Default for By {
    fn default() -> Self {
        Self::Whole(BTreeSet::new())
    }
}

impl Compared {
    /// The default: method, path, query, media type (without parameters) and content, byte for byte.
    pub fn whole() -> Self {
        Self::default()
    }

    /// These, and the values of the header too, such as `Accept`. Given again, a further header.
    #[must_use]
    pub fn and_header(self, name: &HeaderName) -> Self {
        match self.0 {
            By::Whole(mut headers) => {
                headers.insert(name.as_str().to_owned());
                Self(By::Whole(headers))
            }
            other => Self(other),
        }
    }

    /// Nothing but the key: a request with another content gets the stored response as well.
    pub fn key_only() -> Self {
        Self(By::Nothing)
    }

    /// What `choose` takes from the request and its content, beside method, path and query: for content with a time in it
    /// that every retry sets anew.
    pub fn chosen(choose: impl Fn(&Parts, &[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self(By::Own(Arc::new(choose)))
    }

    /// What the published policy says of it.
    pub(super) fn described(&self) -> Vec<String> {
        let inputs = |more: &[&str]| {
            ["method", "path", "query"].iter().chain(more).map(|&input| input.to_owned()).collect::<Vec<_>>()
        };
        match &self.0 {
            By::Nothing => Vec::new(),
            By::Own(_) => inputs(&["what the application chooses"]),
            By::Whole(headers) => {
                let mut all = inputs(&["media type", "content"]);
                all.extend(headers.iter().map(|header| format!("header {header}")));
                all
            }
        }
    }
}

impl fmt::Debug for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compared").field(&self.described()).finish()
    }
}

/// The call that a request is.
pub(super) fn prepared(
    config: &Config,
    scope: &Scope,
    key: &IdempotencyKey,
    parts: &Parts,
    content: &Content,
) -> Prepared {
    let handle = Some(config.idempotency.clone());
    let mut call = Prepared::of(handle, config.operation.clone(), config.policies);
    let path = path(parts);
    if let Scope::Of(kind, who) = scope {
        call.key("principal", kind);
        call.key("principal", &**who);
    }
    if config.scope == KeyScope::Operation {
        call.key("method", parts.method.as_str());
        call.key("path", path);
    }
    call.key("key", key);
    if matches!(config.compared.0, By::Nothing) {
        return call;
    }
    call.argument("method", parts.method.as_str(), &[]);
    call.argument("path", path, &[]);
    call.argument("query", &query(parts), &[]);
    match &config.compared.0 {
        By::Nothing => {}
        By::Own(choose) => call.argument("chosen", &choose(parts, &content.bytes), &[]),
        By::Whole(headers) => {
            call.argument("media type", &media_type(parts), &[]);
            call.argument("content", &content.digest, &[]);
            for name in headers {
                let values: Vec<&[u8]> =
                    parts.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
                call.argument("header", &(name, values), &[]);
            }
        }
    }
    call
}

/// The whole path, also of a request that a nested router sees without its prefix.
pub(super) fn path(parts: &Parts) -> &str {
    whole_uri(parts).path()
}

fn query(parts: &Parts) -> Option<&str> {
    whole_uri(parts).query()
}

fn whole_uri(parts: &Parts) -> &http::Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = parts.extensions.get() {
        return uri;
    }
    &parts.uri
}

/// Whether a router of axum has found no route for the request.
pub(super) fn is_unmatched<B>(request: &Request<B>) -> bool {
    #[cfg(feature = "axum")]
    {
        use axum::extract::{MatchedPath, OriginalUri};
        let found = request.extensions();
        found.get::<OriginalUri>().is_some() && found.get::<MatchedPath>().is_none()
    }
    #[cfg(not(feature = "axum"))]
    {
        let _ = request;
        false
    }
}

/// The media type without its parameters, which say how a content is written, and not what it is.
fn media_type(parts: &Parts) -> Option<String> {
    let value = String::from_utf8_lossy(parts.headers.get(CONTENT_TYPE)?.as_bytes());
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}
