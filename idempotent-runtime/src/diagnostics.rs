//! Traits that say in the user's words what a wrongly annotated function lacks.
//!
//! Each holds for exactly the types that its supertrait holds for. Generated code goes through them, so that the compiler
//! reports these, with the fix, at the argument or selector that is wrong.

use std::future::Future;
use std::pin::Pin;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::fingerprint::Skip;
use crate::on_error::{Decision, ErrorPolicy};
use crate::policy::OnError;
use crate::reconcile::Reconciled;
use crate::shim::{Begun, Fallible, Prepared, Running};

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

/// [`Prepared::argument`].
pub fn argument<T: Argument + ?Sized>(call: &mut Prepared, name: &'static str, value: &T, skip: Skip) {
    call.argument(name, value, skip);
}

/// [`Prepared::key`].
pub fn key<T: KeyPart + ?Sized>(call: &mut Prepared, selector: &'static str, value: &T) {
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
    note = "implement `From<idempotent_runtime::Error>` for it, for example as a variant `Idempotency(#[from] Error)`"
)]
pub trait Refusable: From<Error> {}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> Refusable for E {}

/// The answer of a `reconcile` expression for a function that returns `R`.
#[diagnostic::on_unimplemented(
    message = "the future given as `reconcile` gives `{Self}`, which does not fit `{R}`",
    label = "expected `Result<Reconciled<T>, E>`, with the `T` and `E` that the function returns"
)]
pub trait Found<R: Fallible> {
    /// The same, as a result.
    fn found(self) -> Result<Reconciled<R::Ok>, R::Err>;
}

impl<T, E> Found<Result<T, E>> for Result<Reconciled<T>, E> {
    fn found(self) -> Self {
        self
    }
}

/// `reconcile::reconcile`, in a box: it is seldom needed, so it takes no room in the future of each call.
pub fn reconcile<R, P, F>(running: Running, on_error: &P, asked: F) -> Asking<impl Future<Output = Begun<R>>>
where
    R: Fallible<Ok: Kept + ReadBack, Err: Refusable>,
    P: ErrorPolicy<R::Err>,
    F: Future<Output: Found<R>>,
{
    Box::pin(crate::reconcile::reconcile(running, on_error, async { asked.await.found() }))
}

type Asking<F> = Pin<Box<F>>;

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
pub fn decided<E, F: Fn(&E) -> D, D: Decision<E>>(function: F) -> Decided<E, F> {
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
