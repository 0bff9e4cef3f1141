//! Traits that say in the user's words what a wrongly annotated function lacks.
//!
//! Each holds for exactly the types that its supertrait holds for. Generated code goes through them, so that the compiler
//! reports these, with the fix, at the argument or selector that is wrong.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::fingerprint::Skip;
use crate::on_error::{Decision, ErrorPolicy};
use crate::policy::OnError;
use crate::reconcile::{Finding, Reconciled, Reconciling};
use crate::shim::{Fallible, Granted, Prepared};
use crate::transaction::{self, BegunIn, EnteredIn, TransactionConnection};

/// An argument that can be fingerprinted: anything that is `Serialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be fingerprinted",
    label = "this is not `Serialize`",
    note = "derive `serde::Serialize` for it, add a `Serialize` bound, or list the argument in `skip(..)`"
)]
pub trait Argument: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Argument for T {}

/// A value that can be a part of the key: anything that is `Serialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "this is not `Serialize`",
    note = "choose a field that is a string, a number or an id, for example `key = \"order.id\"`"
)]
pub trait KeyPart: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> KeyPart for T {}

/// [`Prepared::argument`]. As in [`key`], the value comes before its name.
pub fn argument<T: Argument + ?Sized>(call: &mut Prepared, value: &T, name: &'static str, skip: Skip) {
    call.argument(name, value, skip);
}

/// [`Prepared::key`].
///
/// The value comes before its text. An editor that completes in it compares two expansions, one with a name typed in, and finds
/// the value in both only where nothing before it has changed.
pub fn key<T: KeyPart + ?Sized>(call: &mut Prepared, value: &T, selector: &'static str) {
    call.key(selector, value);
}

/// A result that can be stored: anything that is `Serialize`.
#[diagnostic::on_unimplemented(
    message = "a result of type `{Self}` cannot be stored",
    label = "`{Self}` is not `Serialize`",
    note = "derive `serde::Serialize` for it: a duplicate gets the stored result"
)]
pub trait Kept: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Kept for T {}

/// A result that can be given to a duplicate: anything that is `DeserializeOwned`.
#[diagnostic::on_unimplemented(
    message = "a stored result of type `{Self}` cannot be read back",
    label = "`{Self}` is not `DeserializeOwned`",
    note = "derive `serde::Deserialize` for it, and let it own what it holds: a duplicate gets the stored result"
)]
pub trait ReadBack: DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> ReadBack for T {}

/// An error that can say that a call was refused: anything that is `From<Error>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned when a call is refused",
    label = "`{Self}` is not `From<idempotent_runtime::Error>`",
    note = "implement `From<idempotent_runtime::Error>` for it, for example with `thiserror` as a variant \
            `Idempotency(#[from] idempotent_runtime::Error)`; where errors are stored, with `#[serde(skip)]`"
)]
pub trait Refusable: From<Error> {}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> Refusable for E {}

/// The answer of a `reconcile` expression for a function that returns `R`.
#[diagnostic::on_unimplemented(
    message = "the future given as `reconcile` gives `{Self}`, which does not fit `{R}`",
    label = "expected `Result<Reconciled<T>, E>`, with the `T` and `E` that the function returns"
)]
pub trait Found<R> {
    /// The same, in terms of what the function returns.
    fn found(self) -> Finding<R>;
}

impl<T, E> Found<Result<T, E>> for Result<Reconciled<T>, E> {
    fn found(self) -> Finding<Result<T, E>> {
        Finding::of(self)
    }
}

/// The future of a `reconcile` expression, with what is asked of its type left behind: what is wrong with it is reported
/// where it is given, and nowhere else.
pub struct Asked<R, F> {
    future: Pin<Box<F>>,
    poll: fn(Pin<&mut F>, &mut Context<'_>) -> Poll<Finding<R>>,
}

/// Takes the future of a `reconcile` expression.
pub fn asked<R, F: Future<Output: Found<R>>>(future: F) -> Asked<R, F> {
    Asked { future: Box::pin(future), poll: |future, cx| future.poll(cx).map(Found::found) }
}

impl<R, F> Future for Asked<R, F> {
    type Output = Finding<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Finding<R>> {
        let poll = self.poll;
        poll(self.future.as_mut(), cx)
    }
}

impl<R, F> fmt::Debug for Asked<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

/// Asks about an earlier attempt. It takes any future of a finding, so that a message about `R` points at it, and not at
/// the question.
pub fn reconcile<R, P, A>(granted: Granted<R, P>, on_error: &P, asked: A) -> Reconciling<'_, R, P, A>
where
    A: Future<Output = Finding<R>>,
{
    crate::reconcile::reconcile(granted, on_error, asked)
}

/// The argument that `transaction` names.
pub fn connection<C: TransactionConnection>(connection: &mut C) -> &mut dyn TransactionConnection {
    connection
}

/// `transaction::begun_in`.
pub fn begun_in<R, P>(entered: Result<EnteredIn, Error>, on_error: &P) -> BegunIn<R, P>
where
    R: Fallible<Ok: Kept + ReadBack, Err: Refusable>,
    P: ErrorPolicy<R::Err>,
{
    transaction::begun_in(entered, on_error)
}

/// An error that can be given to a duplicate: anything that is `Serialize` and `DeserializeOwned`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored for replay",
    label = "`{Self}` is not `Serialize` and `DeserializeOwned`",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, with `#[serde(skip)]` on the variant that holds \
            `idempotent_runtime::Error`, or choose another `on_error`"
)]
pub trait Replayable: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<E: Serialize + DeserializeOwned> Replayable for E {}

/// [`Replay`](crate::on_error::Replay), with the type of the error left behind: as [`Decided`].
pub fn replayed<E: Replayable>(_: ErrorOf<E>) -> Decided<E, ()> {
    Decided {
        function: (),
        decide: |(), _| OnError::Replay,
        encode: <OnError as Decision<E>>::encode,
        decode: <OnError as Decision<E>>::decode,
    }
}

/// The error of an annotated function.
#[derive(Debug)]
pub struct ErrorOf<E>(PhantomData<fn(&E)>);

/// The error of a function that returns `R`.
pub fn error_of<R: Fallible<Err: Refusable>>() -> ErrorOf<R::Err> {
    ErrorOf(PhantomData)
}

/// A function that decides about errors, with its type left behind: what is wrong with it is reported where it is given,
/// and nowhere else.
#[derive(Debug)]
pub struct Decided<E, F> {
    function: F,
    decide: fn(&F, &E) -> OnError,
    encode: fn(&E) -> Result<Vec<u8>, serde_json::Error>,
    decode: fn(&[u8]) -> Option<Result<E, serde_json::Error>>,
}

/// The policy of a function of the error.
///
/// The error is said by a value: what is wrong with the function is then reported at it once, and not at a type as well.
pub fn decided<E, F, D>(_: ErrorOf<E>, function: F) -> Decided<E, F>
where
    F: Fn(&E) -> D,
    D: Decision<E>,
{
    Decided {
        function,
        decide: |function, error| function(error).verdict(),
        encode: D::encode,
        decode: D::decode,
    }
}

impl<E, F> ErrorPolicy<E> for Decided<E, F> {
    fn decide(&self, error: &E) -> OnError {
        (self.decide)(&self.function, error)
    }
    fn encode(&self, error: &E) -> Result<Vec<u8>, serde_json::Error> {
        (self.encode)(error)
    }
    fn decode(&self, bytes: &[u8]) -> Option<Result<E, serde_json::Error>> {
        (self.decode)(bytes)
    }
}
