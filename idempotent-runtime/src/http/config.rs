//! What a layer is set to, and how it is built.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use tokio::sync::Semaphore;

use super::headers::KeptHeaders;
use super::key::{Field, Syntax};
use super::layer::IdempotencyLayer;
use super::principal::Principal;
use super::problem::TYPES;
use super::request::Compared;
use super::responses::Responses;
use crate::idempotency::Idempotency;
use crate::key::OperationName;
use crate::policy::OnCrash;
use crate::prepared::Policies;

/// Where the same key means the same request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyScope {
    /// In one operation: another method or path with the same key is another request.
    #[default]
    Operation,
    /// Everywhere, as Stripe has it: another method or path with the same key is refused with 422.
    Principal,
}

/// What a retry gets when the content of the first response could not be kept: it was a stream, or too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Omitted {
    /// Status and headers of the first response without content, marked by `Idempotent-Replay: omitted`.
    #[default]
    Head,
    /// The problem `result-not-retained`.
    Problem,
}

/// All settings of a layer.
pub(super) struct Config {
    pub(super) idempotency: Idempotency,
    pub(super) operation: OperationName,
    pub(super) policies: Policies,
    pub(super) principal: Principal,
    pub(super) field: Field,
    pub(super) required: bool,
    pub(super) methods: Vec<Method>,
    pub(super) signal_ignored: bool,
    pub(super) scope: KeyScope,
    pub(super) compared: Compared,
    pub(super) responses: Responses,
    pub(super) headers: KeptHeaders,
    pub(super) marker: HeaderName,
    pub(super) omitted: Omitted,
    pub(super) max_request: usize,
    pub(super) max_response: usize,
    pub(super) read_timeout: Duration,
    pub(super) fail_open: bool,
    pub(super) in_flight: Arc<Semaphore>,
    pub(super) most_in_flight: usize,
    pub(super) types: Box<str>,
    pub(super) docs: Option<HeaderValue>,
}

const MOST_IN_FLIGHT: usize = 10_000;

/// How an [`IdempotencyLayer`] is set. Made by [`IdempotencyLayer::builder`].
#[must_use]
pub struct IdempotencyLayerBuilder {
    config: Config,
    error: Option<&'static str>,
}

impl IdempotencyLayerBuilder {
    pub(super) fn new(idempotency: &Idempotency, principal: Principal) -> Self {
        let config = Config {
            idempotency: idempotency.clone(),
            operation: OperationName::from_static("http"),
            policies: Policies::DEFAULT,
            principal,
            field: Field {
                name: HeaderName::from_static("idempotency-key"),
                alias: None,
                syntax: Syntax::Lenient,
                length: 1..=255,
            },
            required: false,
            methods: vec![Method::POST, Method::PATCH],
            signal_ignored: false,
            scope: KeyScope::Operation,
            compared: Compared::default(),
            responses: Responses::default(),
            headers: KeptHeaders::default(),
            marker: HeaderName::from_static("idempotent-replayed"),
            omitted: Omitted::Head,
            max_request: 1024 * 1024,
            max_response: 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            fail_open: false,
            in_flight: Arc::new(Semaphore::new(MOST_IN_FLIGHT)),
            most_in_flight: MOST_IN_FLIGHT,
            types: TYPES.into(),
            docs: None,
        };
        Self { config, error: None }
    }

    /// The operation under which the records are listed, `"http"` by default. Part of every key.
    pub fn operation(mut self, name: impl Into<OperationName>) -> Self {
        self.config.operation = name.into();
        self
    }

    /// A request without a key is refused with 400. Default: it is let through unprotected.
    pub fn required(mut self) -> Self {
        self.config.required = true;
        self
    }

    /// The methods whose requests are protected. Default: POST and PATCH. GET, HEAD, OPTIONS, TRACE, QUERY and CONNECT never are.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        let never =
            |method: &Method| method.is_safe() || method == Method::CONNECT || method.as_str() == "QUERY";
        self.config.methods = methods.into_iter().filter(|method| !never(method)).collect();
        self
    }

    /// A key on a request that is not protected is answered with `Idempotency-Status: ignored`. Default: no.
    pub fn signal_ignored(mut self) -> Self {
        self.config.signal_ignored = true;
        self
    }

    /// Which values name a key. Default: [`Syntax::Lenient`].
    pub fn syntax(mut self, syntax: Syntax) -> Self {
        self.config.field.syntax = syntax;
        self
    }

    /// How many bytes a key may have. Default: 1 to 255. At least 16 are advised where clients share their keys.
    pub fn key_length(mut self, bytes: RangeInclusive<usize>) -> Self {
        if bytes.is_empty() || *bytes.start() == 0 || *bytes.end() > 1024 {
            self.error = Some("the length of a key must be a range within 1 to 1024 bytes");
        }
        self.config.field.length = bytes;
        self
    }

    /// The header that has the key. Default: `Idempotency-Key`.
    pub fn header(mut self, name: HeaderName) -> Self {
        self.config.field.name = name;
        self
    }

    /// Another header that may have it, such as `X-Idempotency-Key`. Two different keys in one request are refused.
    pub fn alias(mut self, name: HeaderName) -> Self {
        self.config.field.alias = Some(name);
        self
    }

    /// Where the same key means the same request. Default: [`KeyScope::Operation`].
    pub fn scope(mut self, scope: KeyScope) -> Self {
        self.config.scope = scope;
        self
    }

    /// What has to be the same in a retry. Default: method, path, query, media type and content.
    pub fn compared(mut self, compared: Compared) -> Self {
        self.config.compared = compared;
        self
    }

    /// Which responses are kept. Default: [`Responses::answered`].
    pub fn responses(mut self, responses: Responses) -> Self {
        self.config.responses = responses;
        self
    }

    /// Stores this header too, which is left out by default, such as `Set-Cookie`.
    pub fn keep_header(mut self, name: HeaderName) -> Self {
        self.config.headers.kept.insert(name);
        self
    }

    /// Never stores this header.
    pub fn drop_header(mut self, name: HeaderName) -> Self {
        self.config.headers.dropped.insert(name);
        self
    }

    /// The header that marks a replay with `true`. Default: `Idempotent-Replayed`, as Stripe has it.
    pub fn marker(mut self, name: HeaderName) -> Self {
        self.config.marker = name;
        self
    }

    /// What a retry gets in place of a content that was not kept. Default: [`Omitted::Head`].
    pub fn omitted(mut self, omitted: Omitted) -> Self {
        self.config.omitted = omitted;
        self
    }

    /// How long a stored response is kept, counted from when it was stored. Default: the handle's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.policies.ttl = Some(ttl);
        self
    }

    /// How long a silent request counts as being processed. Default: the handle's. It is renewed while the handler runs.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.policies.lease = Some(lease);
        self
    }

    /// How long a duplicate waits for the first one's response before it gets 409. Default: the handle's; not at all.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.config.policies.wait = Some(wait);
        self
    }

    /// What happens after a request that gave no response: the process died, the handler panicked, or the service failed.
    /// Default: [`OnCrash::Refuse`]. With [`OnCrash::Retry`] the application says that running again is safe.
    pub fn on_crash(mut self, policy: OnCrash) -> Self {
        self.config.policies.on_crash = policy;
        self
    }

    /// The largest content of a protected request, in bytes. Default: 1 MiB. It is held in memory once.
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.config.max_request = bytes;
        self
    }

    /// The largest content of a response that is stored, in bytes. Default: 1 MiB. A larger one is delivered as it is.
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.config.max_response = bytes;
        self
    }

    /// How long the content of a request may take to arrive. Default: 30 s.
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.config.read_timeout = timeout;
        self
    }

    /// How many protected handlers may be at work at a time, those whose clients have gone included. Default: 10,000. More
    /// are refused with 503.
    pub fn max_in_flight(mut self, handlers: usize) -> Self {
        self.config.most_in_flight = handlers.min(Semaphore::MAX_PERMITS);
        self.config.in_flight = Arc::new(Semaphore::new(self.config.most_in_flight));
        self
    }

    /// When the store cannot be reached before the handler, the request runs **unprotected**. Default: it is refused with
    /// 503.
    pub fn fail_open(mut self) -> Self {
        self.config.fail_open = true;
        self
    }

    /// What the types of problems begin with. Default: a page of this library's documentation.
    pub fn problem_types(mut self, base: impl Into<Box<str>>) -> Self {
        self.config.types = base.into();
        self
    }

    /// Where the API's documentation says what it wants: a `Link` in the problem `missing-key`.
    pub fn docs_url(mut self, url: &str) -> Self {
        match HeaderValue::from_str(&format!("<{url}>; rel=\"describedby\"; type=\"text/html\"")) {
            Ok(link) => self.config.docs = Some(link),
            Err(_) => self.error = Some("the address of the documentation cannot stand in a header"),
        }
        self
    }

    /// The layer.
    ///
    /// # Errors
    /// When two settings contradict each other, or one is out of its range.
    pub fn build(self) -> Result<IdempotencyLayer, LayerError> {
        let Self { config, error } = self;
        if let Some(reason) = error.or_else(|| contradiction(&config)) {
            return Err(LayerError(reason));
        }
        Ok(IdempotencyLayer::of(config))
    }
}

/// Why a layer could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerError(&'static str);

impl fmt::Display for LayerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for LayerError {}

fn contradiction(config: &Config) -> Option<&'static str> {
    let settings = &config.idempotency.core().settings;
    let ttl = config.policies.ttl.unwrap_or(settings.ttl);
    let lease = config.policies.lease.unwrap_or(settings.lease.duration);
    if lease < crate::prepared::SHORTEST || ttl < crate::prepared::SHORTEST {
        return Some("`ttl` and `lease` must be at least a millisecond");
    }
    if ttl <= lease {
        return Some(
            "`ttl` must be longer than `lease`: the response would be gone before the request is given up",
        );
    }
    if !crate::key::names_fit(&settings.namespace, &config.operation) || config.operation.is_empty() {
        return Some(
            "the operation's name is empty, or longer than the 180 bytes it shares with the namespace",
        );
    }
    if config.field.alias.as_ref() == Some(&config.field.name) {
        return Some("`alias` is the header that has the key already");
    }
    if config.max_request == 0 {
        return Some("`max_request_bytes` is zero");
    }
    None
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("operation", &self.operation)
            .field("principal", &self.principal)
            .field("required", &self.required)
            .field("methods", &self.methods)
            .field("responses", &self.responses)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for IdempotencyLayerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdempotencyLayerBuilder").field(&self.config).finish()
    }
}
