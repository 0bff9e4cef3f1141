//! Options that choose among the arguments: `key`, `fingerprint`, `skip`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use super::values::{borrow, in_body};
use super::{Argument, Key, Part, Setting, no_argument, parameters};
use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;
use crate::key::{self, Source};
use crate::patterns::Binding;
use crate::skip;

/// The key, and the text of its template.
pub(super) struct Resolved {
    pub(super) key: Key,
    template: String,
}

/// `key = …`
pub(super) fn key(args: &Args, function: &Function, errors: &mut Errors) -> Option<Resolved> {
    let Some(value) = &args.key else {
        if args.unreadable {
            return None;
        }
        errors.at_span(Span::call_site(), "missing `key`; for example `#[idempotent(key = \"order.id\")]`");
        return None;
    };
    match key::parse(value, errors)? {
        key::Key::Whole => Some(Resolved { key: Key::Whole, template: String::new() }),
        key::Key::Parts { template, parts } => {
            let parts = parts.iter().filter_map(|part| resolve(part, function, errors)).collect();
            Some(Resolved { key: Key::Parts(parts), template })
        }
    }
}

pub(super) fn template(key: Option<&Resolved>) -> Vec<Setting> {
    let text = key.map(|key| key.template.clone()).filter(|text| !text.is_empty());
    text.map(Setting::Template).into_iter().collect()
}

/// Without a fingerprinted argument `"*"` is one key for all calls.
pub(super) fn key_is_not_empty(
    args: &Args,
    key: Option<&Resolved>,
    arguments: &[Argument],
    errors: &mut Errors,
) {
    if let (Some(value), Some(Resolved { key: Key::Whole, .. })) = (&args.key, key)
        && arguments.is_empty()
    {
        errors.at(
            &value.expr,
            "`*` means all fingerprinted arguments, and there are none, so all calls would share one key",
        );
    }
}

/// A selector's root must be an argument; of an expression the compiler knows better.
fn resolve(part: &key::Part, function: &Function, errors: &mut Errors) -> Option<Part> {
    let value = match &part.source {
        Source::Expression(expr) => in_body(borrow(expr), function),
        Source::Selector(selector, span) => {
            let Some(root) = root(&selector.root, function) else {
                let message = match selector.root.as_str() {
                    "self" => "there is no `self` here".to_owned(),
                    root => no_argument(root, function),
                };
                errors.at_span(*span, message);
                return None;
            };
            let value = selector.value(root, *span);
            quote_spanned!(*span=> &#value)
        }
    };
    Some(Part { text: part.text.clone(), value })
}

fn root<'a>(name: &str, function: &'a Function) -> Option<&'a Ident> {
    if name == "self" {
        return function.receiver.as_ref();
    }
    function.bindings.iter().find(|binding| binding.name == name).map(|binding| &binding.ident)
}

/// What is fingerprinted: the selected values, or every argument that is not skipped.
pub(super) fn fingerprinted(args: &Args, function: &Function, errors: &mut Errors) -> Vec<Argument> {
    fingerprint_or_skip(args, function, errors);
    let skips = skips(args, function, errors);
    if let Some(value) = &args.fingerprint {
        let parts = key::parse_fingerprint(value, errors).unwrap_or_default();
        let arguments = parts.iter().filter_map(|part| resolve(part, function, errors));
        return arguments
            .map(|part| Argument { cfgs: Vec::new(), name: part.text, value: part.value, skip: Vec::new() })
            .collect();
    }
    arguments_have_names(function, errors);
    let outermost = function.bindings.iter().filter(|binding| binding.outermost);
    outermost.filter_map(|binding| argument(binding, &skips)).collect()
}

/// The two say the same thing from two sides.
fn fingerprint_or_skip(args: &Args, function: &Function, errors: &mut Errors) {
    if let (Some(_), Some(skip)) = (&args.fingerprint, &args.skip)
        && !skip.paths.iter().all(|path| is_parameter(path, function))
    {
        errors.at(
            &skip.keyword,
            "`skip` and `fingerprint` exclude each other; `fingerprint` already names all that counts",
        );
    }
}

/// Without a name an argument can neither be fingerprinted nor skipped, so two different calls might look the same.
fn arguments_have_names(function: &Function, errors: &mut Errors) {
    for pattern in &function.unnamed {
        errors.at(
            pattern,
            "argument has no name, so it cannot be fingerprinted; name it (for example `_ctx`) and add it to `skip(..)`",
        );
    }
}

fn argument(binding: &Binding, skips: &[skip::Path]) -> Option<Argument> {
    let skips: Vec<&skip::Path> = skips.iter().filter(|path| path.argument == binding.name).collect();
    if skips.iter().any(|path| path.names.is_empty()) {
        return None;
    }
    Some(Argument {
        cfgs: binding.cfgs.clone(),
        name: binding.name.clone(),
        value: located(binding),
        skip: skips.into_iter().map(|path| path.names.clone()).collect(),
    })
}

/// Borrows an argument, located at its type, where an error about a missing trait belongs.
fn located(binding: &Binding) -> TokenStream {
    let mut ident = binding.ident.clone();
    let Some(ty) = &binding.whole else {
        let span = Span::mixed_site().located_at(ident.span());
        return quote_spanned!(span=> &#ident);
    };
    // An expression reaches from its first token to its last, and so does the type.
    let (first, last) = ends(ty).unwrap_or((ident.span(), ident.span()));
    let own = ident.span();
    ident.set_span(own.located_at(last));
    let borrow = quote_spanned!(own.located_at(first)=> &);
    // A message about a reference would say less than one about what it refers to.
    let reference = matches!(ty, Type::Reference(_)).then(|| quote_spanned!(own.located_at(last)=> *));
    quote!(#borrow #reference #ident)
}

fn ends(ty: &Type) -> Option<(Span, Span)> {
    let tokens: Vec<TokenTree> = ty.to_token_stream().into_iter().collect();
    Some((tokens.first()?.span(), tokens.last()?.span()))
}

/// `skip(…)`, as far as it names arguments.
fn skips(args: &Args, function: &Function, errors: &mut Errors) -> Vec<skip::Path> {
    let mut kept: Vec<skip::Path> = Vec::new();
    for path in args.skip.iter().flat_map(|skips| &skips.paths) {
        if path.argument == "self" {
            errors.at_span(path.span, "`self` is never fingerprinted, so there is nothing to skip");
        } else if is_parameter(path, function) {
            // It says something about the function, and nothing about an argument.
        } else if !function.binds(&path.argument) {
            errors.at_span(path.span, no_argument(&path.argument, function));
        } else if let Some(earlier) = kept.iter().find(|earlier| earlier.covers(path)) {
            errors.at_span(path.span, format!("`{}` is already skipped", earlier.text()));
        } else {
            kept.push(skip::Path {
                argument: path.argument.clone(),
                names: path.names.clone(),
                span: path.span,
            });
        }
    }
    kept
}

/// `skip(T)`: a type or const parameter, or with a receiver `Self`.
fn is_parameter(path: &skip::Path, function: &Function) -> bool {
    let is_self = path.argument == "Self" && function.receiver.is_some();
    let is_named = || parameters::names(&function.signature.generics).any(|name| *name == path.argument);
    path.names.is_empty() && !function.binds(&path.argument) && (is_self || is_named())
}
