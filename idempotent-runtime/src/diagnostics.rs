//! Traits that say in the user's words what a wrongly annotated function lacks.
//!
//! Each holds for exactly the types that its supertrait holds for. Generated code goes through them, so that the compiler
//! reports these, with the fix, at the argument or selector that is wrong.

use serde::Serialize;

use crate::fingerprint::Skip;
use crate::on_error::{Decision, ErrorPolicy};
use crate::shim::Prepared;

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

/// [`shim::decide`](crate::shim::decide), giving a type that hides the function: what is wrong with it is reported once.
pub fn decided<E, F: Fn(&E) -> D, D: Decision<E>>(function: F) -> impl ErrorPolicy<E> {
    crate::on_error::decide(function)
}
