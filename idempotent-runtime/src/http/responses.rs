//! Which responses are kept, and which give their key back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::response::Parts;

/// What a response does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is the result: it is stored, and every retry gets it.
    Store,
    /// Nothing has happened: the key is given back, and a retry runs.
    Release,
}

/// Which responses of the handler are kept.
#[derive(Clone)]
pub struct Responses(Rule);

#[derive(Clone)]
enum Rule {
    Answered,
    Outcomes,
    Stripe,
    SuccessOnly,
    By(Arc<dyn Fn(&Parts) -> Keep + Send + Sync>),
}

impl Responses {
    /// The default: 2xx, 3xx, 402, 404, 409, 410, and 5xx other than 503 are stored; the other 4xx and 503 release.
    ///
    /// A handler that failed with a 5xx had begun, and nobody knows how far it came, so it is not run again.
    pub const fn answered() -> Self {
        Self(Rule::Answered)
    }

    /// As [`answered`](Self::answered), but every 5xx releases: for handlers that do nothing before they are sure.
    pub const fn outcomes() -> Self {
        Self(Rule::Outcomes)
    }

    /// Everything that a handler answers is stored, errors of the server too, as
    /// [Stripe does](https://docs.stripe.com/api/idempotent_requests) once a request has begun to execute.
    pub const fn stripe() -> Self {
        Self(Rule::Stripe)
    }

    /// Only 2xx is stored, everything else releases.
    pub const fn success_only() -> Self {
        Self(Rule::SuccessOnly)
    }

    /// As `rule` says for each response.
    pub fn by(rule: impl Fn(&Parts) -> Keep + Send + Sync + 'static) -> Self {
        Self(Rule::By(Arc::new(rule)))
    }

    pub(super) fn keep(&self, response: &Parts) -> Keep {
        match &self.0 {
            Rule::By(rule) => rule(response),
            _ => self.of_status(response.status).unwrap_or(Keep::Release),
        }
    }

    /// What is done with a status; `None` if it does not depend on the status alone.
    pub(super) fn of_status(&self, status: StatusCode) -> Option<Keep> {
        // An interim response is none yet, and one that switches protocols has no content.
        if status.is_informational() {
            return Some(Keep::Release);
        }
        let success = status.is_success() || status.is_redirection();
        let outcome = success || matches!(status.as_u16(), 402 | 404 | 409 | 410);
        // A status that no class has is a handler's own, so it is an answer.
        let server = !status.is_client_error() && !success;
        let store = match &self.0 {
            Rule::By(_) => return None,
            Rule::Answered => outcome || (server && status != StatusCode::SERVICE_UNAVAILABLE),
            Rule::Outcomes => outcome && status != StatusCode::NOT_MODIFIED,
            Rule::Stripe => true,
            Rule::SuccessOnly => status.is_success(),
        };
        let conditional = status == StatusCode::NOT_MODIFIED && !matches!(self.0, Rule::Stripe);
        Some(if store && !conditional { Keep::Store } else { Keep::Release })
    }
}

impl Default for Responses {
    fn default() -> Self {
        Self::answered()
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Rule::Answered => "Responses::answered()",
            Rule::Outcomes => "Responses::outcomes()",
            Rule::Stripe => "Responses::stripe()",
            Rule::SuccessOnly => "Responses::success_only()",
            Rule::By(_) => "Responses::by(..)",
        })
    }
}

/// What a handler itself says about one response. It goes into the response's extensions, and comes before
/// [`Responses`].
///
/// ```
/// use idempotent_runtime::http::Verdict;
///
/// let mut response = http::Response::new("the card was declined");
/// response.extensions_mut().insert(Verdict::store().ttl(std::time::Duration::from_secs(3600)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "it is for the extensions of a response"]
pub struct Verdict {
    pub(super) keep: Option<Keep>,
    pub(super) ttl: Option<Duration>,
}

impl Verdict {
    /// This response is the result.
    pub fn store() -> Self {
        Self { keep: Some(Keep::Store), ttl: None }
    }

    /// Nothing has happened: the key is given back. After [`begin_effects`](crate::Attempt::begin_effects) the key stays
    /// used all the same, and nobody gets a response.
    pub fn release() -> Self {
        Self { keep: Some(Keep::Release), ttl: None }
    }

    /// What [`Responses`] says, for another time than the layer's.
    pub fn keep_for(ttl: Duration) -> Self {
        Self { keep: None, ttl: Some(ttl) }
    }

    /// Kept so long, if it is kept. At least a millisecond.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}
