//! What the code written by `#[idempotent]` calls. Hidden, and only for the macro crate of the same version.
//!
//! An annotated function becomes
//!
//! ```text
//! async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
//!     static SITE: Site = Site::new(concat!(module_path!(), "::charge")).ttl_ms(86_400_000);
//!     let mut call = Prepared::new(&SITE, current());        // or `handle(&(self.idempotency))`
//!     call.key("order.id", &order.id);
//!     call.argument("order", &order, &[]);
//!     match begin::<Result<Receipt, ChargeError>, _>(call, &Retry).await {
//!         Begun::Answer(answer) => answer,
//!         Begun::Run(running) => run(running, Retry, async move { …the body… }).await,
//!     }
//! }
//! ```

use std::future::Future;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::fingerprint::Skip;
use crate::policy::{OnCrash, OnError, OnMissingKey, Unstored};

/// What one annotated function says about itself. Its address tells it apart from every other.
#[derive(Debug)]
pub struct Site {
    name: &'static str,
}

impl Site {
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }
    /// The literal text of a key template, holes as `{}`: `"charge-{}"`.
    #[must_use]
    pub const fn template(self, _text: &'static str) -> Self {
        self
    }
    #[must_use]
    pub const fn ttl_ms(self, _ms: u64) -> Self {
        self
    }
    #[must_use]
    pub const fn lease_ms(self, _ms: u64) -> Self {
        self
    }
    #[must_use]
    pub const fn wait_ms(self, _ms: u64) -> Self {
        self
    }
    #[must_use]
    pub const fn version(self, _version: u32) -> Self {
        self
    }
    #[must_use]
    pub const fn on_crash(self, _policy: OnCrash) -> Self {
        self
    }
    #[must_use]
    pub const fn on_missing_key(self, _policy: OnMissingKey) -> Self {
        self
    }
}

/// What a `store = …` expression gives: `Idempotency`, or a reference, `Arc` or `Box` of one.
#[diagnostic::on_unimplemented(
    message = "`store` must give an `Idempotency` handle, and this is `{Self}`",
    label = "not an `Idempotency` handle",
    note = "make one with `Idempotency::new(store)` and give it, or a reference to it"
)]
pub trait AsIdempotency {}

/// The handle that a call works with, or none.
#[derive(Debug)]
pub struct Handle;

/// The handle of this task, or the installed one.
pub fn current() -> Handle {
    todo!()
}

/// The handle that `store = …` gave.
pub fn handle<H: AsIdempotency + ?Sized>(_handle: &H) -> Handle {
    todo!()
}

/// One call before it begins: key and fingerprint are taken here, before the body can change its arguments.
#[derive(Debug)]
pub struct Prepared {}

impl Prepared {
    pub fn new(_site: &'static Site, _handle: Handle) -> Self {
        todo!()
    }
    /// One part of the key, with the selector's text for errors.
    pub fn key<T: Serialize + ?Sized>(&mut self, _selector: &'static str, _value: &T) {}
    /// `key = "*"`: the fingerprint is the key.
    pub fn key_from_fingerprint(&mut self) {}
    /// One fingerprinted argument (or, with `fingerprint = "…"`, one selected value), without what is skipped in it.
    pub fn argument<T: Serialize + ?Sized>(&mut self, _name: &'static str, _value: &T, _skip: Skip) {}
}

/// The return type of an annotated function: `Result<T, E>` under any alias.
#[diagnostic::on_unimplemented(
    message = "`#[idempotent]` needs a function that returns `Result<T, E>`, and this one returns `{Self}`",
    label = "not a `Result`"
)]
pub trait Fallible {
    type Ok;
    type Err;
    fn into_result(self) -> Result<Self::Ok, Self::Err>;
    fn from_result(result: Result<Self::Ok, Self::Err>) -> Self;
}

impl<T, E> Fallible for Result<T, E> {
    type Ok = T;
    type Err = E;
    fn into_result(self) -> Self {
        self
    }
    fn from_result(result: Self) -> Self {
        result
    }
}

/// What a returned `Err` does, and how it is stored if it is.
pub trait ErrorPolicy<E> {
    fn decide(&self, error: &E) -> OnError;
    /// The error as it is stored. Called only when `decide` said `Replay`.
    fn encode(&self, error: &E) -> Result<Vec<u8>, serde_json::Error>;
    /// A stored error again; `None` when this policy never stores one.
    fn decode(&self, bytes: &[u8]) -> Option<Result<E, serde_json::Error>>;
}

/// `on_error = "retry"`
#[derive(Clone, Copy, Debug)]
pub struct Retry;
/// `on_error = "refuse"`
#[derive(Clone, Copy, Debug)]
pub struct Refuse;
/// `on_error = "replay"`
#[derive(Clone, Copy, Debug)]
pub struct Replay;
/// `on_error = path`: a function of `&E`
#[derive(Clone, Copy, Debug)]
pub struct Decide<F, D>(pub F, pub PhantomData<fn() -> D>);

/// What a function given as `on_error` may return: `OnError` or `Unstored`.
#[diagnostic::on_unimplemented(
    message = "a function given as `on_error` must return `OnError` or `Unstored`, and this one returns `{Self}`"
)]
pub trait Decision<E> {}
impl<E: Serialize + DeserializeOwned> Decision<E> for OnError {}
impl<E> Decision<E> for Unstored {}

/// `on_error = path`.
pub fn decide<E, F: Fn(&E) -> D, D: Decision<E>>(function: F) -> Decide<F, D> {
    Decide(function, PhantomData)
}

impl<E> ErrorPolicy<E> for Retry {
    fn decide(&self, _: &E) -> OnError {
        OnError::Retry
    }
    fn encode(&self, _: &E) -> Result<Vec<u8>, serde_json::Error> {
        Ok(Vec::new())
    }
    fn decode(&self, _: &[u8]) -> Option<Result<E, serde_json::Error>> {
        None
    }
}
impl<E> ErrorPolicy<E> for Refuse {
    fn decide(&self, _: &E) -> OnError {
        OnError::Refuse
    }
    fn encode(&self, _: &E) -> Result<Vec<u8>, serde_json::Error> {
        Ok(Vec::new())
    }
    fn decode(&self, _: &[u8]) -> Option<Result<E, serde_json::Error>> {
        None
    }
}
impl<E: Serialize + DeserializeOwned> ErrorPolicy<E> for Replay {
    fn decide(&self, _: &E) -> OnError {
        OnError::Replay
    }
    fn encode(&self, error: &E) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(error)
    }
    fn decode(&self, bytes: &[u8]) -> Option<Result<E, serde_json::Error>> {
        Some(serde_json::from_slice(bytes))
    }
}
impl<E, F: Fn(&E) -> D, D: Decision<E>> ErrorPolicy<E> for Decide<F, D> {
    fn decide(&self, _: &E) -> OnError {
        todo!()
    }
    fn encode(&self, _: &E) -> Result<Vec<u8>, serde_json::Error> {
        todo!()
    }
    fn decode(&self, _: &[u8]) -> Option<Result<E, serde_json::Error>> {
        todo!()
    }
}

/// The right to run the body, not yet used. Dropped unused, it gives the key back.
#[derive(Debug)]
pub struct Running {}

/// What a call has to do after it has begun.
#[derive(Debug)]
pub enum Begun<R> {
    /// Nothing: this is its result.
    Answer(R),
    /// Run the body.
    Run(Running),
}

/// Reserves the key, or finds the result.
pub async fn begin<R, P>(_call: Prepared, _policy: &P) -> Begun<R>
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
{
    todo!()
}

/// Runs the body and records what it gives.
pub async fn run<R, P, F>(_running: Running, _policy: P, _body: F) -> R
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
    F: Future<Output = R>,
{
    todo!()
}

/// As [`run`], on a task of its own.
pub async fn run_detached<R, P, F>(_running: Running, _policy: P, _body: F) -> R
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>> + Send + 'static,
    P: ErrorPolicy<R::Err> + Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    todo!()
}
