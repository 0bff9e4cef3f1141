//! The middleware: one key, the same bytes, until there is an answer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{Extensions, HeaderValue};
use reqwest::{Body, Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use super::answer::{Answer, Meaning, look};
use super::attempts::Attempts;
use super::budget::Budget;
use super::error::ClientError;
use super::key::RequestKey;
use super::policy::{PolicyError, RetryPolicy};
use super::vendor::{KeyForm, Place, Vendor};

/// Gives requests a key, and sends them again under it. See the [module](super).
#[derive(Clone)]
pub struct IdempotencyMiddleware {
    vendor: Arc<Vendor>,
    policy: RetryPolicy,
    budget: Arc<Budget>,
    on_abandoned: Option<Hook>,
}

type Hook = Arc<dyn Fn(&RequestKey) + Send + Sync>;

/// How a response was come by; in its extensions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exchange {
    /// The key that was sent; `None` for a request without one.
    pub key: Option<RequestKey>,
    /// How often the request was sent.
    pub tries: u32,
    /// Whether the server says that this is the response of an earlier try.
    pub replayed: bool,
}

/// The number of the try, in the extensions that inner middleware sees. The first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryNumber(pub u32);

/// Makes the content of a request anew for each try. Give it with `with_extension` to a request whose content is a stream;
/// it must make the same bytes each time.
#[derive(Clone)]
pub struct BodyFactory(Arc<dyn Fn() -> Body + Send + Sync>);

impl BodyFactory {
    /// Content that `make` makes.
    pub fn new(make: impl Fn() -> Body + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }
}

impl IdempotencyMiddleware {
    /// With the default policy, for servers that follow the Internet-Draft.
    pub fn new() -> Self {
        Self {
            vendor: Arc::default(),
            policy: RetryPolicy::default(),
            budget: Arc::default(),
            on_abandoned: None,
        }
    }

    /// For this server, under this policy.
    ///
    /// # Errors
    /// When the policy does not [suit](RetryPolicy::check) the server.
    pub fn with(vendor: Vendor, policy: RetryPolicy) -> std::result::Result<Self, PolicyError> {
        policy.check(&vendor)?;
        Ok(Self { vendor: Arc::new(vendor), policy, ..Self::new() })
    }

    /// Is told the key of a request whose future is dropped after it was first sent: what became of it is not known.
    #[must_use]
    pub fn on_abandoned(mut self, hook: impl Fn(&RequestKey) + Send + Sync + 'static) -> Self {
        self.on_abandoned = Some(Arc::new(hook));
        self
    }

    /// Puts a key where the server looks for it, unless there is one, which stays. `None`: this request needs none.
    fn keyed(
        &self,
        request: &mut Request,
        extensions: &Extensions,
    ) -> std::result::Result<Option<RequestKey>, ClientError> {
        let given = extensions.get::<RequestKey>().cloned();
        let key = match &self.vendor.place {
            Place::Header(name) => {
                let mut lines = request.headers().get_all(name).iter();
                match (lines.next(), lines.next()) {
                    (Some(line), None) => return self.checked(line.to_str().ok()).map(Some),
                    (Some(_), Some(_)) => return Err(ClientError::InvalidKey),
                    (None, _) if given.is_none() && !self.vendor.methods.contains(request.method()) => {
                        return Ok(None);
                    }
                    (None, _) => given.unwrap_or_else(|| self.random()),
                }
            }
            Place::JsonMember(_) if given.is_none() && !self.vendor.methods.contains(request.method()) => {
                return Ok(None);
            }
            Place::JsonMember(member) => return self.in_json(request, member, given),
        };
        if key.as_str().len() > self.vendor.longest {
            return Err(ClientError::InvalidKey);
        }
        if let Place::Header(name) = &self.vendor.place {
            let text = match self.vendor.form {
                KeyForm::Bare => key.as_str().to_owned(),
                KeyForm::Quoted => format!("\"{}\"", key.as_str()),
            };
            let mut value = HeaderValue::try_from(text).map_err(|_| ClientError::InvalidKey)?;
            value.set_sensitive(true);
            request.headers_mut().insert(name.clone(), value);
        }
        Ok(Some(key))
    }

    /// The key that the caller has put there itself.
    fn checked(&self, line: Option<&str>) -> std::result::Result<RequestKey, ClientError> {
        let line = line.ok_or(ClientError::InvalidKey)?;
        let bare = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).unwrap_or(line);
        if bare.len() > self.vendor.longest { Err(ClientError::InvalidKey) } else { RequestKey::new(bare) }
    }

    /// A content that is no JSON object has no place for a key, and is sent without one.
    fn in_json(
        &self,
        request: &mut Request,
        member: &'static str,
        given: Option<RequestKey>,
    ) -> std::result::Result<Option<RequestKey>, ClientError> {
        let content = request.body().and_then(Body::as_bytes).unwrap_or_default();
        let Ok(mut object) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(content)
        else {
            return if given.is_some() { Err(ClientError::InvalidKey) } else { Ok(None) };
        };
        if let Some(there) = object.get(member) {
            return self.checked(there.as_str()).map(Some);
        }
        let key = given.unwrap_or_else(|| self.random());
        if key.as_str().len() > self.vendor.longest {
            return Err(ClientError::InvalidKey);
        }
        object.insert(member.to_owned(), key.as_str().into());
        // An object that was read as JSON is written as JSON.
        let content = serde_json::to_vec(&object).map_err(|_| ClientError::InvalidKey)?;
        request.headers_mut().remove(http::header::CONTENT_LENGTH);
        *request.body_mut() = Some(content.into());
        Ok(Some(key))
    }

    fn random(&self) -> RequestKey {
        if self.vendor.longest < 36 { RequestKey::random_short() } else { RequestKey::random() }
    }
}

impl Default for IdempotencyMiddleware {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Middleware for IdempotencyMiddleware {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let key = self.keyed(&mut request, extensions).map_err(Error::middleware)?;
        let safe = request.method().is_safe();
        let host = request.url().host_str().unwrap_or_default().to_owned();
        self.budget.earn(&host, self.policy.budget);
        let mut sending = Sending { middleware: self, key: key.clone(), at_work: false };
        let mut attempts = Attempts::new(&self.policy);
        // Whether a try may have been carried out without an answer.
        let mut in_doubt = false;
        let factory = extensions.get::<BodyFactory>().cloned();
        let mut next_request = Some(request);
        while let Some(mut request) = next_request.take() {
            let spare = request.try_clone().or_else(|| remade(&request, factory.as_ref()));
            if let (Some(factory), None) = (&factory, request.body().and_then(Body::as_bytes)) {
                *request.body_mut() = Some((factory.0)());
            }
            extensions.insert(TryNumber(attempts.begin()));
            sending.at_work = true;
            let answer = match next.clone().run(request, extensions).await {
                Ok(response) => look(response, &self.vendor).await.map_err(Error::from),
                Err(error) => Err(error),
            };
            let step = Step::after(&answer, key.is_some() || safe);
            in_doubt |= step != Step::Done && leaves_doubt(&answer);
            let wish = answer.as_ref().ok().and_then(|answer| answer.wait);
            let more = spare.is_some()
                && match step {
                    Step::Done => false,
                    Step::Failed => attempts.after_failure(wish, &self.budget, &host).await,
                    Step::Busy => attempts.after_in_progress(wish).await,
                };
            if more {
                // What is left of the answer goes, so that its connection can be used again.
                drop(answer);
                next_request = spare;
                continue;
            }
            sending.at_work = false;
            return end(answer, key, attempts.made(), in_doubt && !safe);
        }
        // There is always a request to begin with.
        Err(Error::middleware(ClientError::InvalidKey))
    }
}

/// What the caller gets in the end.
fn end(answer: Result<Answer>, key: Option<RequestKey>, tries: u32, in_doubt: bool) -> Result<Response> {
    let unknown = |key: RequestKey, status, cause: Option<Error>| {
        Error::middleware(ClientError::OutcomeUnknown { key, tries, status, cause: cause.map(Arc::new) })
    };
    match (answer, key) {
        (Ok(answer), key) => {
            let status = answer.response.status();
            match (&answer.meaning, &key) {
                (Meaning::Reused { resource }, Some(key)) => {
                    return Err(Error::middleware(ClientError::KeyReused {
                        key: key.clone(),
                        resource: resource.clone(),
                    }));
                }
                (Meaning::Unknown, Some(key)) => return Err(unknown(key.clone(), Some(status), None)),
                (Meaning::Again { .. } | Meaning::InProgress, Some(key)) if in_doubt => {
                    return Err(unknown(key.clone(), Some(status), None));
                }
                _ => {}
            }
            let mut response = answer.response;
            response.extensions_mut().insert(Exchange { key, tries, replayed: answer.replayed });
            Ok(response)
        }
        (Err(error), Some(key)) if in_doubt && !is_the_callers(&error) => {
            Err(unknown(key, None, Some(error)))
        }
        (Err(error), _) => Err(error),
    }
}

/// What is to be done after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    Failed,
    Busy,
}

impl Step {
    /// `protected`: sending it again is safe. Otherwise only what the server cannot have seen is sent again.
    fn after(answer: &Result<Answer>, protected: bool) -> Self {
        match answer {
            Ok(answer) if protected => match answer.meaning {
                Meaning::Again { .. } => Self::Failed,
                Meaning::InProgress => Self::Busy,
                Meaning::Final | Meaning::Reused { .. } | Meaning::Unknown => Self::Done,
            },
            Err(error) if never_arrived(error) || (protected && !is_the_callers(error)) => Self::Failed,
            _ => Self::Done,
        }
    }
}

/// Whether the request may have been carried out, and this is not what came of it.
fn leaves_doubt(answer: &Result<Answer>) -> bool {
    match answer {
        Ok(answer) => matches!(answer.meaning, Meaning::Again { in_doubt: true } | Meaning::InProgress),
        Err(error) => !never_arrived(error),
    }
}

/// A copy of a request whose content cannot be copied, but made again.
fn remade(request: &Request, factory: Option<&BodyFactory>) -> Option<Request> {
    let factory = factory?;
    let mut copy = Request::new(request.method().clone(), request.url().clone());
    *copy.headers_mut() = request.headers().clone();
    *copy.timeout_mut() = request.timeout().copied();
    *copy.version_mut() = request.version();
    *copy.body_mut() = Some((factory.0)());
    Some(copy)
}

/// Whether the server cannot have seen the request.
fn never_arrived(error: &Error) -> bool {
    matches!(error, Error::Reqwest(error) if error.is_connect())
}

/// Whether sending it again would fail again: it is wrong, or another middleware refuses it.
fn is_the_callers(error: &Error) -> bool {
    match error {
        Error::Reqwest(error) => error.is_builder() || error.is_redirect(),
        Error::Middleware(_) => true,
    }
}

/// Tells of a request that nobody waits for any more.
struct Sending<'m> {
    middleware: &'m IdempotencyMiddleware,
    key: Option<RequestKey>,
    at_work: bool,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let (true, Some(key)) = (self.at_work, &self.key) {
            tracing::warn!(target: "idempotent", "a request was given up while its outcome was not known");
            if let Some(hook) = &self.middleware.on_abandoned {
                hook(key);
            }
        }
    }
}

impl fmt::Debug for IdempotencyMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyMiddleware")
            .field("vendor", &self.vendor)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BodyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyFactory(..)")
    }
}
