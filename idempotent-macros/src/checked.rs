//! What the attribute means: every rule is checked, every name resolved, and nothing optional is left.

mod arguments;
mod parameters;
mod values;

use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt;
use syn::{Attribute, Token, Type};

use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;
use crate::{suggest, transaction};

/// What the expansion needs to know beside the function itself.
pub(crate) struct Checked {
    pub(crate) runtime: Runtime,
    pub(crate) name: Name,
    pub(crate) settings: Vec<Setting>,
    pub(crate) handle: Handle,
    pub(crate) key: Key,
    /// Whether calls of the method on two types may look the same.
    pub(crate) type_counts: bool,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) on_error: OnError,
    /// What is asked before a second run: a future.
    pub(crate) reconcile: Option<TokenStream>,
    /// Where it is asked for.
    pub(crate) detached: Option<Span>,
    /// The argument that is the caller's transaction.
    pub(crate) transaction: Option<transaction::Connection>,
    /// What the function returns once it is awaited.
    pub(crate) output: Type,
    /// The names that the body must own, the last one first, as they are dropped.
    pub(crate) captured: Vec<Captured>,
    /// Those after these in the source, in its order: the body must own them under bindings of its own.
    pub(crate) rebound: Vec<Captured>,
}

/// Where the runtime crate is.
pub(crate) enum Runtime {
    /// A dependency of this name.
    Dependency(String),
    /// At the path that `crate` gives.
    Given(TokenStream),
}

pub(crate) enum Name {
    Given(String),
    /// The function's own, below its module's path.
    InModule(String),
}

/// What the site says beside its name; the text is the method or the variant.
pub(crate) enum Setting {
    Milliseconds(&'static str, u64),
    Version(u32),
    Template(String),
    OnCrash(&'static str),
    OnMissingKey(&'static str),
    Detached,
    Reconciles,
}

pub(crate) enum Handle {
    Current,
    Given(TokenStream),
}

pub(crate) enum Key {
    /// The fingerprint.
    Whole,
    Parts(Vec<Part>),
}

/// A value that the key takes a part from; `value` borrows it.
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) value: TokenStream,
}

/// A value that is fingerprinted.
pub(crate) struct Argument {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) name: String,
    /// Borrows it.
    pub(crate) value: TokenStream,
    /// The serialized names below it that are left out.
    pub(crate) skip: Vec<Vec<String>>,
}

pub(crate) enum OnError {
    /// A policy of the runtime that asks nothing of the error, and where it was chosen.
    Policy(&'static str, Span),
    /// The error is stored.
    Replay(Span),
    Decide(TokenStream),
}

pub(crate) struct Captured {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) mutability: Option<Token![mut]>,
    pub(crate) ident: Ident,
}

/// Checks everything, so that every mistake is reported; `None` when something is missing.
pub(crate) fn check(args: &Args, function: &Function, errors: &mut Errors) -> Option<Checked> {
    let key = arguments::key(args, function, errors);
    let transaction = transaction::argument(args, function, errors);
    let mut arguments = arguments::fingerprinted(args, function, errors);
    if let (Some(connection), None) = (&transaction, &args.fingerprint) {
        // A connection says nothing about what is asked.
        arguments.retain(|argument| connection.name.unraw() != argument.name);
    }
    arguments::key_is_not_empty(args, key.as_ref(), &arguments, errors);
    parameters::are_seen(args, function, key.as_ref(), errors);
    let type_counts = parameters::type_counts(args, function, key.as_ref(), &arguments);
    let mut settings = arguments::template(key.as_ref());
    settings.extend(values::settings(args, errors));
    detached_owns_its_arguments(args, function, errors);
    let name = name(args, function, errors);
    let handle = values::handle(args, function, errors);
    let on_error = values::on_error(args, function, errors);
    let reconcile = values::reconcile(args, function, errors);
    let runtime = values::runtime(args, errors);
    let output = output(function, errors)?;
    let (captured, rebound) = owned(function);
    Some(Checked {
        runtime: runtime?,
        name,
        settings,
        handle,
        key: key?.key,
        type_counts,
        arguments,
        on_error: on_error?,
        reconcile,
        detached: args.detached.as_ref().map(Ident::span),
        transaction,
        output,
        captured,
        rebound,
    })
}

/// The names that the body captures, and those that it binds again.
///
/// A body may set a `mut` argument to a reference into itself, which a captured variable cannot hold. What is bound again
/// is dropped before what is captured, so all names after the first such one are bound again too.
fn owned(function: &Function) -> (Vec<Captured>, Vec<Captured>) {
    let names = || {
        function.bindings.iter().map(|binding| Captured {
            cfgs: binding.cfgs.clone(),
            mutability: binding.mutability,
            ident: binding.ident.clone(),
        })
    };
    let captured = names().take_while(|name| name.mutability.is_none()).count();
    let receiver = function.receiver.iter().map(|ident| Captured {
        cfgs: Vec::new(),
        mutability: None,
        ident: ident.clone(),
    });
    (names().take(captured).rev().chain(receiver).collect(), names().skip(captured).collect())
}

/// The stored result is decoded into this type, so it must be one that can be written down.
fn output(function: &Function, errors: &mut Errors) -> Option<Type> {
    let Some(output) = &function.output else {
        errors.at(
            &function.signature.ident,
            "the function returns nothing; `#[idempotent]` needs `-> Result<T, E>`, where `T` is what a duplicate gets",
        );
        return None;
    };
    if let Type::Never(never) = output {
        errors.at(never, "the function never returns, so there is no result to keep; return `Result<T, E>`");
        return None;
    }
    if let Some(span) = opaque(output) {
        errors.at_span(
            span,
            "an opaque type cannot be read back from a store; use a concrete type in the return type",
        );
        return None;
    }
    if let Some(span) = success(output).and_then(|ty| borrowed(quote::quote!(#ty), Static::IsReference)) {
        errors.at_span(
            span,
            "a result that borrows cannot be read back from a store; return an owned type, for example `String` for `&str`",
        );
        return None;
    }
    Some(output.clone())
}

/// The `T` of a `Result<T, E>` that is written so.
fn success(output: &Type) -> Option<&Type> {
    let Type::Path(path) = output else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Result")?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

/// Where `impl` stands in the type.
fn opaque(output: &Type) -> Option<Span> {
    let mut tokens: Vec<_> = quote::quote!(#output).into_iter().collect();
    while let Some(token) = tokens.pop() {
        match token {
            proc_macro2::TokenTree::Ident(ident) if ident == "impl" => return Some(ident.span()),
            proc_macro2::TokenTree::Group(group) => tokens.extend(group.stream()),
            _ => {}
        }
    }
    None
}

/// The name outlives the process in every stored key, so it must say one thing, and fit.
fn name(args: &Args, function: &Function, errors: &mut Errors) -> Name {
    let own = function.signature.ident.unraw().to_string();
    let Some(given) = &args.name else {
        name_is_given_for_methods(function, &own, errors);
        return Name::InModule(own);
    };
    let Some(literal) = given.string() else {
        errors
            .at(&given.expr, format!("expected a string literal for `name`, for example `name = \"{own}\"`"));
        return Name::InModule(own);
    };
    let name = literal.value();
    if name.trim().is_empty() {
        errors.at(literal, format!("`name` is empty; for example `name = \"{own}\"`"));
    }
    if name.starts_with("__idempotent") {
        errors.at(literal, "names that start with `__idempotent` are reserved");
    }
    if name.len() > 180 {
        errors.at(literal, format!("`name` has {} bytes, and 180 is the most that fits a key", name.len()));
    }
    Name::Given(name)
}

/// Two types may have a method of one name in one module; an attribute does not see which type it is in.
fn name_is_given_for_methods(function: &Function, own: &str, errors: &mut Errors) {
    if function.receiver.is_some() {
        errors.at(
            &function.signature.ident,
            format!(
                "a method needs a `name`, because its type is not known here; for example `name = \"{own}\"`"
            ),
        );
    }
}

/// A task of its own outlives the caller, so it can borrow nothing from it.
fn detached_owns_its_arguments(args: &Args, function: &Function, errors: &mut Errors) {
    if args.detached.is_none() {
        return;
    }
    for argument in &function.signature.inputs {
        let (tokens, fix) = match argument {
            syn::FnArg::Receiver(receiver) => (quote::quote!(#receiver), "take `self: Arc<Self>`"),
            syn::FnArg::Typed(typed) => {
                let ty = &typed.ty;
                (quote::quote!(#ty), "take the argument by value")
            }
        };
        if let Some(span) = borrowed(tokens, Static::IsOwned) {
            errors.at_span(
                span,
                format!("`detached` runs the body on a task of its own, which cannot borrow from the caller; {fix}"),
            );
        }
    }
}

/// What `&'static T` is: a task may keep it, and a store cannot give it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Static {
    IsOwned,
    IsReference,
}

/// Where a reference or a lifetime other than `'static` stands.
fn borrowed(tokens: TokenStream, of_static: Static) -> Option<Span> {
    let mut lifetime = None;
    let mut reference = None;
    for token in tokens {
        match &token {
            proc_macro2::TokenTree::Punct(mark) if mark.as_char() == '\'' => lifetime = Some(mark.span()),
            proc_macro2::TokenTree::Punct(mark) if mark.as_char() == '&' => reference = Some(mark.span()),
            proc_macro2::TokenTree::Ident(name) if lifetime.is_some() => {
                if name != "static" || (of_static == Static::IsReference && reference.is_some()) {
                    return reference.or(lifetime);
                }
                (lifetime, reference) = (None, None);
            }
            proc_macro2::TokenTree::Group(group) => {
                if let Some(span) = reference.or_else(|| borrowed(group.stream(), of_static)) {
                    return Some(span);
                }
            }
            _ if reference.is_some() => return reference,
            _ => {}
        }
    }
    reference
}

/// `` no argument named `ordr`; did you mean `order`? the arguments are … ``
pub(crate) fn no_argument(name: &str, function: &Function) -> String {
    let names = || function.bindings.iter().map(|binding| binding.name.as_str());
    if function.bindings.is_empty() {
        return format!("no argument named `{name}`; the function binds none");
    }
    let nearest =
        suggest::closest(name, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("no argument named `{name}`; {nearest}the arguments are {}", suggest::list(names()))
}
