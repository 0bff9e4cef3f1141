//! What the code written by `#[idempotent]` calls. Hidden, and only for the macro crate of the same version.
//!
//! An annotated function becomes
//!
//! ```text
//! async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
//!     static SITE: Site = Site::new(concat!(module_path!(), "::charge")).ttl_ms(86_400_000);
//!     let mut call = prepare(&SITE, current());              // or `handle(&(self.idempotency))`
//!     key(&mut call, &order.id, "order.id");
//!     argument(&mut call, &order, "order", &[]);
//!     match begin::<Result<Receipt, ChargeError>, _>(call, &Retry).await {
//!         Begun::Answer(answer) => answer,
//!         Begun::Run(running) => run(running, Retry, Box::pin(async move { …the body… })).await,
//!     }
//! }
//! ```
//!
//! Whatever need not be generic is not, so that an annotated function costs little to compile.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::call;
use crate::context::Context;
use crate::diagnostics::{Kept, ReadBack, Refusable};
use crate::error::Error;
use crate::events;
use crate::idempotency::{Claim, Core, Idempotency};
use crate::prepared::{Policies, Ready};
use crate::run::{Ends, Right, Run, ending_or_panic};

/// The body is put in its box where it is made, so that it is not first moved from call to call.
pub use std::boxed::Box as Boxed;

pub use crate::detached::{Detached, detachable, run_detached};
pub use crate::on_error::{ErrorPolicy, Refuse, Replay, Retry, decide};
pub use crate::policy::{OnCrash, OnMissingKey};
pub use crate::prepared::Prepared;
pub use crate::run::Running;
pub use crate::transaction::{BegunIn, Closing, EndingIn, EnteredIn, RunningIn, enter_in, record_in, run_in};

/// What one annotated function says about itself. Its address tells it apart from every other.
#[derive(Debug)]
pub struct Site {
    pub(crate) name: &'static str,
    pub(crate) template: Option<&'static str>,
    pub(crate) policies: Policies,
    pub(crate) detached: bool,
    /// Which handle, and which type, the function's name was last checked for: see [`check`].
    known_to: AtomicU64,
}

impl Site {
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            template: None,
            policies: Policies::DEFAULT,
            detached: false,
            known_to: AtomicU64::new(0),
        }
    }
    /// The literal text of a key template, holes as `{}`: `"charge-{}"`.
    #[must_use]
    pub const fn template(mut self, text: &'static str) -> Self {
        self.template = Some(text);
        self
    }
    #[must_use]
    pub const fn ttl_ms(mut self, ms: u64) -> Self {
        self.policies.ttl = Some(Duration::from_millis(ms));
        self
    }
    #[must_use]
    pub const fn lease_ms(mut self, ms: u64) -> Self {
        self.policies.lease = Some(Duration::from_millis(ms));
        self
    }
    #[must_use]
    pub const fn wait_ms(mut self, ms: u64) -> Self {
        self.policies.wait = Some(Duration::from_millis(ms));
        self
    }
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.policies.version = version;
        self
    }
    #[must_use]
    pub const fn on_crash(mut self, policy: OnCrash) -> Self {
        self.policies.on_crash = policy;
        self
    }
    #[must_use]
    pub const fn on_missing_key(mut self, policy: OnMissingKey) -> Self {
        self.policies.on_missing_key = policy;
        self
    }
    /// The body will be preceded by [`reconcile`] when there was an attempt before.
    #[must_use]
    pub const fn reconciles(mut self) -> Self {
        self.policies.reconciles = true;
        self
    }
    /// The body will be given to [`run_detached`], which needs a runtime.
    #[must_use]
    pub const fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    pub(crate) fn is_known_to(&self, handle: u64, of_type: Option<&str>) -> bool {
        self.known_to.load(Ordering::Relaxed) == check(handle, of_type)
    }

    /// Claims the name for this function, or for the method of one type. `false`: another of this handle has it.
    pub(crate) fn claim(&'static self, core: &Core, of_type: Option<&'static str>) -> bool {
        let claimed = core.claim(self.name, Claim { site: std::ptr::from_ref(self).addr(), of_type });
        if claimed {
            self.known_to.store(check(core.id, of_type), Ordering::Relaxed);
        }
        claimed
    }
}

/// A number for a handle and a type: FNV-1a, which costs a call little. It is kept in the process only.
fn check(handle: u64, of_type: Option<&str>) -> u64 {
    let Some(name) = of_type else { return handle };
    let seed = 0xcbf2_9ce4_8422_2325 ^ handle;
    name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// What a `store = …` expression gives: an [`Idempotency`], or a reference, `Arc` or `Box` of one.
#[diagnostic::on_unimplemented(
    message = "`store` must give an `Idempotency` handle, and this is `{Self}`",
    label = "not an `Idempotency` handle",
    note = "make one with `Idempotency::new(store)` and give it, or a reference to it"
)]
pub trait AsIdempotency {
    fn as_idempotency(&self) -> &Idempotency;
}

impl AsIdempotency for Idempotency {
    fn as_idempotency(&self) -> &Idempotency {
        self
    }
}

/// A reference, a `Box` and an `Arc` of a handle give the handle.
macro_rules! through {
    ($($pointer:ty),*) => {$(
        impl<H: AsIdempotency + ?Sized> AsIdempotency for $pointer {
            fn as_idempotency(&self) -> &Idempotency {
                (**self).as_idempotency()
            }
        }
    )*};
}
through!(&H, Box<H>, Arc<H>);

/// The handle that a call works with, or none.
#[derive(Debug)]
pub struct Handle(Option<Idempotency>);

/// The handle of this task, or the installed one.
pub fn current() -> Handle {
    Handle(Idempotency::current())
}

/// The handle that `store = …` gave.
pub fn handle<H: AsIdempotency + ?Sized>(handle: &H) -> Handle {
    Handle(Some(handle.as_idempotency().clone()))
}

/// One call of the function at `site`, before it begins.
pub fn prepare(site: &'static Site, handle: Handle) -> Prepared {
    Prepared::at(site, handle.0)
}

/// The return type of an annotated function: `Result<T, E>` under any alias.
#[diagnostic::on_unimplemented(
    message = "`#[idempotent]` needs a function that returns `Result<T, E>`, and this one returns `{Self}`",
    label = "not a `Result`",
    note = "the `T` is what a duplicate gets, and the `E` is made from `idempotent_runtime::Error` when a call is refused"
)]
pub trait Fallible {
    type Ok;
    type Err;
    fn as_result(&self) -> Result<&Self::Ok, &Self::Err>;
    fn from_result(result: Result<Self::Ok, Self::Err>) -> Self;
}

impl<T, E> Fallible for Result<T, E> {
    type Ok = T;
    type Err = E;
    fn as_result(&self) -> Result<&T, &E> {
        self.as_ref()
    }
    fn from_result(result: Self) -> Self {
        result
    }
}

/// Stands where it is never called, to tell a body what its value is.
pub fn pinned<R>() -> R {
    std::process::abort()
}

/// Says of which type the method is: nothing else in the call does.
///
/// The name of a type is compared within the process, and never stored: it changes with the source and the compiler.
pub fn of_type<S: ?Sized>(call: &mut Prepared) {
    call.of_type(std::any::type_name::<S>());
}

/// What a call has to do after it has begun.
#[derive(Debug)]
pub enum Begun<R, P> {
    /// Nothing: this is its result.
    Answer(R),
    /// Run the body.
    Run(Granted<R, P>),
}

/// The right to run the body of a function that returns `R`, and what is done with its result: that is known here, where the
/// return type was looked at, so that nothing more is asked of it later.
pub struct Granted<R, P> {
    pub(crate) running: Running,
    pub(crate) ends: Ends<R, P>,
}

impl<R, P> Granted<R, P> {
    /// Whether an attempt before this one may have acted, so that the application has to be asked.
    pub fn is_after_another(&self) -> bool {
        self.running.is_after_another()
    }
}

impl<R, P> fmt::Debug for Granted<R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Granted").field(&self.running).finish()
    }
}

/// Reserves the key, or finds the result.
///
/// Key and fingerprint are finished before this returns, so that they take no room in the future.
pub fn begin<R, P>(prepared: Prepared, on_error: &P) -> Begin<'_, R, P>
where
    R: Fallible<Ok: Kept + ReadBack, Err: Refusable>,
    P: ErrorPolicy<R::Err>,
{
    Begin { beginning: Beginning::new(prepared), on_error, begun: begun::<R, P> }
}

/// The beginning of a call.
///
/// It asks nothing of its types: what a return type lacks is said where the call is made, and not again where it is
/// awaited.
pub struct Begin<'p, R, P> {
    beginning: Beginning,
    on_error: &'p P,
    begun: fn(Result<Known, Error>, &P) -> Begun<R, P>,
}

impl<R, P> Future for Begin<'_, R, P> {
    type Output = Begun<R, P>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Begun<R, P>> {
        let known = ready!(Pin::new(&mut self.beginning).poll(cx));
        Poll::Ready((self.begun)(known, self.on_error))
    }
}

fn begun<R, P>(known: Result<Known, Error>, on_error: &P) -> Begun<R, P>
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
{
    match known {
        Ok(Known::Run(running)) => {
            let ends = Ends {
                ending: |reservation, policy, answer: &R| {
                    ending_or_panic(reservation.attempt(), policy, answer.as_result())
                },
                refuse: |error| R::from_result(Err(error.into())),
            };
            Begun::Run(Granted { running, ends })
        }
        Ok(Known::Replay(stored)) => Begun::Answer(R::from_result(replay(&stored, on_error))),
        Err(error) => Begun::Answer(R::from_result(Err(error.into()))),
    }
}

impl<R, P> fmt::Debug for Begin<'_, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begin").finish_non_exhaustive()
    }
}

/// As [`Begun`], but for the type of the result.
enum Known {
    Replay(crate::replay::Replay),
    Run(Running),
}

/// As [`Begin`], but for its types.
enum Beginning {
    Protected(Instant, call::Beginning),
    Decided(Instant, Option<Result<Known, Error>>),
}

impl Beginning {
    fn new(prepared: Prepared) -> Self {
        let started = Instant::now();
        match prepared.ready(started) {
            Ok(Ready::Protected(call)) => Self::Protected(started, call::begin(call)),
            Ok(Ready::Unprotected(unprotected)) => {
                let right = Right::Unprotected(unprotected);
                Self::Decided(started, Some(Ok(Known::Run(Running(right)))))
            }
            Err(error) => Self::Decided(started, Some(Err(error))),
        }
    }
}

impl Future for Beginning {
    type Output = Result<Known, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let (started, known) = match &mut *self {
            Self::Protected(started, beginning) => {
                let known = match ready!(Pin::new(beginning).poll(cx)) {
                    Ok(call::Begun::Run(reservation)) => {
                        Ok(Known::Run(Running(Right::Protected(reservation))))
                    }
                    Ok(call::Begun::Replay(stored)) => Ok(Known::Replay(stored)),
                    Err(error) => Err(error),
                };
                (*started, known)
            }
            Self::Decided(started, known) => match known.take() {
                Some(known) => (*started, known),
                // Polled after its end, which no executor does.
                None => return Poll::Pending,
            },
        };
        Poll::Ready(known.map_err(|error| refused(error, Some(started))))
    }
}

/// Reads a stored result, and tells of it if it can be given.
pub(crate) fn replay<T, E, P>(stored: &crate::replay::Replay, on_error: &P) -> Result<T, E>
where
    T: DeserializeOwned,
    E: From<Error>,
    P: ErrorPolicy<E>,
{
    let read = stored.plain().and_then(|plain| {
        if !stored.failed {
            return serde_json::from_slice(&plain).map(Ok).map_err(|error| stored.misfit(&error));
        }
        match on_error.decode(&plain) {
            Some(error) => error.map(Err).map_err(|error| stored.misfit(&error)),
            None => {
                Err(stored.unreadable("it is an error, and this program's `on_error` does not replay errors"))
            }
        }
    });
    match read {
        Ok(answer) => {
            stored.given();
            answer
        }
        Err(error) => Err(refused(error, Some(stored.started())).into()),
    }
}

/// Notes that a call gets an error of this crate: in the log, and in the attempt whose body made the call.
pub(crate) fn refused(error: Error, started: Option<Instant>) -> Error {
    if let Some(attempt) = Context::current().attempt.as_ref().and_then(Attempt::nearest) {
        attempt.note_error();
    }
    events::refused(&error, started);
    error
}

/// Runs the body and records what it gives.
pub fn run<R, P, F>(granted: Granted<R, P>, on_error: P, body: Pin<Box<F>>) -> Run<R, P, F>
where
    F: Future<Output = R>,
{
    crate::run::run(granted.running, on_error, body, granted.ends)
}
