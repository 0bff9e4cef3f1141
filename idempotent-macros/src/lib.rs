//! The `#[idempotent]` attribute of the crate `idempotent-runtime`; do not depend on this crate directly.
//!
//! Tokens flow one way: `args` (what was said) → `checked` (what is meant) → `expand` → tokens, or `fallback`.

mod args;
mod boxed;
mod checked;
mod control_flow;
mod duration;
mod errors;
mod expand;
mod fallback;
mod function;
mod key;
mod manifest;
mod patterns;
mod selector;
mod skip;
mod suggest;
#[cfg(test)]
mod tests;
mod transaction;

use proc_macro2::TokenStream;

use crate::errors::Errors;
use crate::function::Function;

/// Documented where users find it: at `idempotent_runtime::idempotent`.
#[cfg(not(fuzzing))]
#[proc_macro_attribute]
pub fn idempotent(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand_attribute(attribute.into(), item.into()).into()
}

/// As the attribute, for the fuzz targets: they compile this file as an ordinary crate.
#[cfg(fuzzing)]
pub fn expanded(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand_attribute(attribute, item)
}

fn expand_attribute(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = args::parse(attribute, &mut errors);
    let function = Function::parse(&item, &mut errors);
    let checked = function.as_ref().and_then(|function| checked::check(&args, function, &mut errors));
    match (function, checked) {
        (Some(function), Some(checked)) if errors.is_empty() => expand::expand(&function, &checked),
        (function, _) => fallback::expand(item, function.is_some(), errors),
    }
}
