//! Type and const parameters: two calls that differ in nothing else must not be one call by accident.
//!
//! A parameter is seen where it stands in the type of an argument, whose values then say what counts; where it is written
//! in `key` or `fingerprint`; and where a bound of a parameter that is seen determines it, as the item of an iterator.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, GenericArgument, GenericParam, Generics, PathArguments, TypeParamBound, WherePredicate};

use super::arguments::Resolved;
use super::{Argument, Key};
use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;

/// The names of the type and const parameters.
pub(super) fn names(generics: &Generics) -> impl Iterator<Item = &Ident> {
    generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some(&parameter.ident),
        GenericParam::Const(parameter) => Some(&parameter.ident),
        GenericParam::Lifetime(_) => None,
    })
}

/// Every parameter is seen, or left out on purpose.
pub(super) fn are_seen(args: &Args, function: &Function, key: Option<&Resolved>, errors: &mut Errors) {
    let generics = &function.signature.generics;
    let seen = seen(args, function);
    let is_skipped = |name: &Ident| skipped(args).any(|skipped| name == skipped);
    for parameter in &generics.params {
        let (name, example) = match parameter {
            GenericParam::Type(parameter) => (&parameter.ident, format!("{}::NAME", parameter.ident)),
            GenericParam::Const(parameter) => (&parameter.ident, parameter.ident.to_string()),
            GenericParam::Lifetime(_) => continue,
        };
        if !seen.contains(&name) && !is_skipped(name) {
            errors.at(
                name,
                format!(
                    "calls that differ only in `{name}` would be one call; put what tells them apart into the key, \
                     for example `key = ({example}, {})`, or leave it out with `skip({name})`",
                    key_so_far(key),
                ),
            );
        }
    }
    for path in args.skip.iter().flat_map(|skips| &skips.paths) {
        if seen.iter().any(|name| **name == path.argument)
            && !function.binds(&path.argument)
            && path.names.is_empty()
        {
            errors.at_span(
                path.span,
                format!(
                    "`{}` is in the type of an argument or in the key, so there is nothing to skip",
                    path.argument
                ),
            );
        }
    }
}

/// What `skip` names and no path goes below.
fn skipped(args: &Args) -> impl Iterator<Item = &str> {
    let paths = args.skip.iter().flat_map(|skips| &skips.paths);
    paths.filter(|path| path.names.is_empty()).map(|path| path.argument.as_str())
}

/// Whether only the caller's type may tell a call of the method from another.
///
/// A method of a generic type, or one that a trait provides, is a method of many types, which the attribute cannot see:
/// the runtime looks whether there are two. A key that is taken from `self` or names `Self` says what it means.
pub(super) fn type_counts(
    args: &Args,
    function: &Function,
    key: Option<&Resolved>,
    arguments: &[Argument],
) -> bool {
    let Some(receiver) = &function.receiver else { return false };
    let of_key = match key.map(|key| &key.key) {
        Some(Key::Parts(parts)) => parts.iter().map(|part| &part.value).collect(),
        _ => Vec::new(),
    };
    let mut values = of_key.into_iter().chain(arguments.iter().map(|argument| &argument.value));
    let own = Ident::new("Self", receiver.span());
    !skipped(args).any(|name| own == name)
        && !values.any(|value| mentions(value.clone(), receiver) || mentions(value.clone(), &own))
}

fn key_so_far(key: Option<&Resolved>) -> String {
    match key.map(|key| &key.key) {
        Some(Key::Parts(parts)) if !parts.is_empty() => {
            parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(", ")
        }
        _ => "id".to_owned(),
    }
}

fn seen<'f>(args: &Args, function: &'f Function) -> Vec<&'f Ident> {
    let generics = &function.signature.generics;
    let mut written = TokenStream::new();
    for argument in &function.signature.inputs {
        if let FnArg::Typed(argument) = argument {
            argument.ty.to_tokens(&mut written);
        }
    }
    for value in [&args.key, &args.fingerprint].into_iter().flatten() {
        value.expr.to_tokens(&mut written);
    }
    let mut seen: Vec<&Ident> = names(generics).filter(|name| mentions(written.clone(), name)).collect();
    loop {
        let determined = determined(generics, &seen);
        let more: Vec<&Ident> = names(generics)
            .filter(|name| !seen.contains(name) && mentions(determined.clone(), name))
            .collect();
        if more.is_empty() {
            return seen;
        }
        seen.extend(more);
    }
}

/// What the bounds of these parameters determine: the types in `Fn(A) -> B` and in `Iterator<Item = A>`.
fn determined(generics: &Generics, seen: &[&Ident]) -> TokenStream {
    let mut tokens = TokenStream::new();
    for parameter in &generics.params {
        if let GenericParam::Type(parameter) = parameter
            && seen.contains(&&parameter.ident)
        {
            parameter.bounds.iter().for_each(|bound| determined_by(bound, &mut tokens));
        }
    }
    for predicate in generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
        if let WherePredicate::Type(predicate) = predicate
            && seen.iter().any(|name| mentions(predicate.bounded_ty.to_token_stream(), name))
        {
            predicate.bounds.iter().for_each(|bound| determined_by(bound, &mut tokens));
        }
    }
    tokens
}

fn determined_by(bound: &TypeParamBound, tokens: &mut TokenStream) {
    let TypeParamBound::Trait(bound) = bound else { return };
    match bound.path.segments.last().map(|segment| &segment.arguments) {
        Some(PathArguments::Parenthesized(arguments)) => arguments.to_tokens(tokens),
        Some(PathArguments::AngleBracketed(arguments)) => {
            for argument in &arguments.args {
                match argument {
                    GenericArgument::AssocType(item) => item.ty.to_tokens(tokens),
                    GenericArgument::Constraint(item) => {
                        item.bounds.iter().for_each(|bound| determined_by(bound, tokens));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether the name stands in the tokens, as a name of its own: not as a lifetime, nor after `::` or a dot.
pub(super) fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    let mut before = None;
    let mut last = None;
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) if ident == name => {
                let in_path = last == Some(':') && before == Some(':');
                let is_field = last == Some('.') && before != Some('.');
                if !in_path && !is_field && last != Some('\'') {
                    return true;
                }
            }
            TokenTree::Group(group) if mentions(group.stream(), name) => return true,
            _ => {}
        }
        before = last;
        last = match &token {
            TokenTree::Punct(mark) => Some(mark.as_char()),
            _ => None,
        };
    }
    false
}
