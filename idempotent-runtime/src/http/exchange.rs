//! One protected request: read → reserve → handle → record → respond. The protocol itself is that of every call; read
//! `call.rs` first.
//!
//! What happens to a client that goes away: while its content is read, nothing was reserved. While the key is reserved,
//! it is given back. After that the handler runs on a task of its own, to its end, and its response is stored.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, TRAILER};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

use super::config::{Config, Omitted};
use super::content;
use super::key::IdempotencyKey;
use super::layer::TakenOn;
use super::principal::Scope;
use super::problem::Problem;
use super::request::{is_unmatched, prepared};
use super::responses::{Keep, Verdict};
use super::service::Content;
use super::stored::{StoredResponse, decode, encode};
use crate::attempt::Attempt;
use crate::call::{self, Begun};
use crate::error::Error;
use crate::outcome::{Outcome, Unrecorded};
use crate::policy::OnCrash;
use crate::prepared::Ready;
use crate::replay::Replay;
use crate::reservation::{Ending, Reservation};
use crate::run::{Ends, Right, Running, run as run_handler, settle};
use crate::shim::refused;
use crate::store::Settled;

/// Says that a replay has no content.
const OMITTED: HeaderName = HeaderName::from_static("idempotent-replay");

/// Answers a request that has a key.
pub(super) async fn exchange<S, Q, A>(
    config: Arc<Config>,
    mut inner: S,
    request: Request<Q>,
    key: IdempotencyKey,
) -> Result<Response<A>, S::Error>
where
    S: Service<Request<Q>, Response = Response<A>, Future: Send, Error: Send> + Send + 'static,
    S::Error: 'static,
    Q: Content,
    A: Content,
{
    let (mut parts, body) = request.into_parts();
    // For the handler, however the request comes to it.
    parts.extensions.insert(key.clone());
    let scope = match config.principal.scope(&parts) {
        Scope::Refused => return Ok(config.problem(Problem::UNIDENTIFIED)),
        Scope::Bypassed => return inner.call(Request::from_parts(parts, body)).await,
        scope => scope,
    };
    let content = match content::read(body, config.max_request, config.read_timeout).await {
        Ok(content) => content,
        Err(problem) => return Ok(config.problem(problem)),
    };
    // Before the key is reserved, so that too many handlers never leave reservations that nobody serves.
    let Ok(permit) = Arc::clone(&config.in_flight).try_acquire_owned() else {
        return Ok(config.problem(Problem::OVERLOADED.after(Duration::from_secs(1))));
    };
    let started = Instant::now();
    let begun = match prepared(&config, &scope, &key, &parts, &content).ready(started) {
        Ok(Ready::Protected(call)) => call::begin(call).await,
        Ok(Ready::Unprotected(unprotected)) => {
            let request = Request::from_parts(parts, Q::from(content.bytes));
            let response = unprotected.context.clone().scope(inner.call(request)).await;
            unprotected.ended();
            return response;
        }
        Err(error) => Err(error),
    };
    let reservation = match begun {
        Ok(Begun::Run(reservation)) => reservation,
        Ok(Begun::Replay(stored)) => return Ok(config.replayed(&stored, &parts.headers)),
        Err(error) => {
            let problem = Problem::from(&refused(error.clone(), Some(started)));
            if config.fail_open && matches!(error, Error::Store { .. }) {
                return inner.call(Request::from_parts(parts, Q::from(content.bytes))).await;
            }
            return Ok(config.problem(problem));
        }
    };
    let request = Request::from_parts(parts, Q::from(content.bytes));
    run(config, inner, request, reservation, permit).await
}

/// Runs the handler under its reservation, on a task of its own.
async fn run<S, Q, A>(
    config: Arc<Config>,
    inner: S,
    mut request: Request<Q>,
    reservation: Reservation,
    permit: OwnedSemaphorePermit,
) -> Result<Response<A>, S::Error>
where
    S: Service<Request<Q>, Response = Response<A>, Future: Send, Error: Send> + Send + 'static,
    S::Error: 'static,
    Q: Content,
    A: Content,
{
    let running = Running(Right::Protected(reservation));
    let background = running.background();
    request.extensions_mut().insert(TakenOn);
    let attempt = running.attempt();
    request.extensions_mut().insert(attempt.clone());
    let handling = Box::pin(handle(inner, request, attempt, Arc::clone(&config)));
    let ends = Ends { ending: ending::<A, S::Error>, refuse: |error| Ok(Handled::Dropped(error)) };
    let run = run_handler(running, Arc::clone(&config), handling, ends);
    let at_work = async move {
        let answer = run.await;
        drop(permit);
        answer
    };
    let task = tokio::spawn(background.track(at_work.in_current_span()));
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(Ok(Handled::Response(response, _))) => Ok(response),
        Ok(Ok(Handled::Dropped(error))) => Ok(config.problem(Problem::from(&error))),
        Ok(Err(error)) => Err(error),
        // As without the layer: whoever is outside deals with it.
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime has ended before the handler.
        Err(Err(_)) => Ok(config.problem(Problem::OUTCOME_UNKNOWN)),
    }
}

/// What came of a handler.
enum Handled<A> {
    /// A response, and what becomes of the record.
    Response(Response<A>, Kept),
    /// It was dropped, because its lease was lost.
    Dropped(Error),
}

enum Kept {
    /// These bytes, for so long.
    Stored(Vec<u8>, Option<Duration>),
    /// Nothing: the key is given back.
    Released,
    /// That there was a response.
    Lost,
}

/// Runs the handler, and makes of its response what is to be stored.
async fn handle<S, Q, A>(
    mut inner: S,
    request: Request<Q>,
    attempt: Attempt,
    config: Arc<Config>,
) -> Result<Handled<A>, S::Error>
where
    S: Service<Request<Q>, Response = Response<A>>,
    A: Content,
{
    let unmatched = is_unmatched(&request);
    let (mut parts, body) = inner.call(request).await?.into_parts();
    parts.headers.remove(&config.marker);
    parts.headers.remove(OMITTED);
    let verdict = parts.extensions.remove::<Verdict>().unwrap_or_default();
    let failed = parts.status.is_client_error() || parts.status.is_server_error();
    // As with the `Err` of a function: what is made of an error of this crate says nothing about the work.
    let passed_on = failed && attempt.owned().is_some_and(|owned| owned.passes_error_on());
    let rule = || {
        let nothing_there = unmatched && parts.status == StatusCode::NOT_FOUND;
        if nothing_there || passed_on { Keep::Release } else { config.responses.keep(&parts) }
    };
    if verdict.keep.unwrap_or_else(rule) == Keep::Release || parts.status.is_informational() {
        return Ok(Handled::Response(Response::from_parts(parts, body), Kept::Released));
    }
    let kept = |content: Option<&[u8]>| {
        let bytes = encode(parts.status, &parts.headers, &config.headers, content);
        bytes.map_or(Kept::Lost, |bytes| Kept::Stored(bytes, verdict.ttl))
    };
    let largest = config.largest_response();
    let exact = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    // A stream goes to the client as it comes, and one whose trailers matter cannot be made again from its bytes.
    if exact.is_none_or(|size| size > largest) || parts.headers.contains_key(TRAILER) {
        let kept = kept(None);
        return Ok(Handled::Response(Response::from_parts(parts, body), kept));
    }
    match Limited::new(body, largest).collect().await {
        Ok(content) => {
            let content = content.to_bytes();
            let kept = kept(Some(&content));
            Ok(Handled::Response(Response::from_parts(parts, A::from(content)), kept))
        }
        // The client would have got a part of it. What it gets now says that the work is done, and that nobody can say
        // what came of it.
        Err(_) => Ok(Handled::Response(config.problem(Problem::NOT_RETAINED), Kept::Lost)),
    }
}

/// What the end of a handler does to its record.
fn ending<A, E>(reservation: &Reservation, config: &Arc<Config>, answer: &Result<Handled<A>, E>) -> Ending {
    let attempt = reservation.attempt();
    let released = || {
        if attempt.may_have_acted() {
            Ending::Settle(Settled::Unknown, Outcome::Executed)
        } else {
            Ending::Release
        }
    };
    match answer {
        Ok(Handled::Response(_, Kept::Released)) => released(),
        Ok(Handled::Response(_, Kept::Stored(bytes, ttl))) => {
            if let Some(ttl) = ttl {
                attempt.call.keep_for(*ttl);
            }
            settle(attempt, Ok(Cow::Borrowed(bytes)), Settled::Completed)
        }
        Ok(Handled::Response(_, Kept::Lost) | Handled::Dropped(_)) => {
            Ending::Settle(Settled::NotRetained, Outcome::Unrecorded(Unrecorded::NotSerializable))
        }
        // A service that fails has said nothing about what it did.
        Err(_) if config.policies.on_crash == OnCrash::Retry => released(),
        Err(_) => Ending::Settle(Settled::Unknown, Outcome::Executed),
    }
}

impl Config {
    /// The layer's own answer.
    pub(super) fn problem<B: From<Bytes>>(&self, problem: Problem) -> Response<B> {
        problem.response(&self.types, self.docs.as_ref())
    }

    /// The largest content that is stored; the rest of a record is its head.
    fn largest_response(&self) -> usize {
        const HEAD: usize = 4 * 1024;
        let most = self.idempotency.core().max_result_bytes().unwrap_or(usize::MAX);
        self.max_response.min(most.saturating_sub(HEAD))
    }

    /// The stored response, for the request with these headers.
    fn replayed<B: From<Bytes>>(&self, replay: &Replay, request: &http::HeaderMap) -> Response<B> {
        let stored = match read(replay) {
            Ok(stored) => stored,
            Err(error) => return self.problem(Problem::from(&refused(error, Some(replay.started())))),
        };
        replay.given();
        let StoredResponse { status, mut headers, mut content } = stored;
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| !accepts(request, encoding)) {
            // Encoded below this layer for the first client. This one could not read it.
            headers.remove(CONTENT_ENCODING);
            content = None;
        }
        if content.is_none() && self.omitted == Omitted::Problem {
            let mut response = self.problem(Problem::NOT_RETAINED);
            response.headers_mut().insert(self.marker.clone(), HeaderValue::from_static("true"));
            return response;
        }
        if content.is_none() {
            headers.insert(OMITTED, HeaderValue::from_static("omitted"));
        }
        headers.insert(self.marker.clone(), HeaderValue::from_static("true"));
        let mut response = Response::new(B::from(content.unwrap_or_default()));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

fn read(replay: &Replay) -> Result<StoredResponse, Error> {
    let plain = replay.plain()?;
    decode(&plain).ok_or_else(|| replay.unreadable("it is no response that this version can read"))
}

/// Whether a request takes this encoding. Only what it names, because nobody names what it cannot read.
fn accepts(request: &http::HeaderMap, encoding: &HeaderValue) -> bool {
    encoding.to_str().is_ok_and(|encodings| encodings.split(',').all(|one| takes(request, one.trim())))
}

/// Whether it takes one coding. What is said of that one comes before what `*` says of all (RFC 9110, section 12.5.3).
fn takes(request: &http::HeaderMap, coding: &str) -> bool {
    let said_of = |wanted: &str| {
        let values = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).find_map(|offer| {
            let mut parts = offer.split(';').map(str::trim);
            let is_it = parts.next().unwrap_or_default().eq_ignore_ascii_case(wanted);
            is_it.then(|| !parts.any(is_zero))
        })
    };
    coding.eq_ignore_ascii_case("identity") || said_of(coding).or_else(|| said_of("*")).unwrap_or(false)
}

/// Whether a parameter is a weight of zero.
fn is_zero(parameter: &str) -> bool {
    let weight = parameter.strip_prefix(['q', 'Q']).and_then(|rest| rest.trim_start().strip_prefix('='));
    weight.is_some_and(|weight| weight.trim().parse::<f32>() == Ok(0.0))
}
