//! Options whose value stands for itself.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit};

use super::{Handle, OnError, Runtime, Setting};
use crate::args::{Args, Value};
use crate::errors::Errors;
use crate::function::Function;
use crate::{control_flow, duration, manifest, suggest};

const ON_CRASH: [(&str, &str); 3] =
    [("refuse", "Refuse"), ("retry", "Retry"), ("retry_before_effects", "RetryBeforeEffects")];
const ON_MISSING_KEY: [(&str, &str); 2] = [("error", "Error"), ("run", "Run")];
const ON_ERROR: [(&str, &str); 3] = [("retry", "Retry"), ("replay", "Replay"), ("refuse", "Refuse")];

/// What the site says beside its name.
pub(super) fn settings(args: &Args, errors: &mut Errors) -> Vec<Setting> {
    let mut settings = Vec::new();
    let ttl = milliseconds(args.ttl.as_ref(), errors);
    let lease = milliseconds(args.lease.as_ref(), errors);
    let wait = milliseconds(args.wait.as_ref(), errors);
    ttl_outlives_lease(args, ttl, lease, errors);
    let durations = [("ttl_ms", ttl), ("lease_ms", lease), ("wait_ms", wait)];
    settings
        .extend(durations.into_iter().filter_map(|(method, ms)| Some(Setting::Milliseconds(method, ms?))));
    settings.extend(args.version.as_ref().and_then(|value| version(value, errors)).map(Setting::Version));
    settings.extend(choice(args.on_crash.as_ref(), &ON_CRASH, errors).map(Setting::OnCrash));
    settings.extend(choice(args.on_missing_key.as_ref(), &ON_MISSING_KEY, errors).map(Setting::OnMissingKey));
    settings.extend(args.detached.as_ref().map(|_| Setting::Detached));
    settings.extend(args.reconcile.as_ref().map(|_| Setting::Reconciles));
    settings
}

fn milliseconds(value: Option<&Value>, errors: &mut Errors) -> Option<u64> {
    let value = value?;
    let keyword = &value.keyword;
    if let Some(text) = value.string() {
        return duration::milliseconds(&text.value())
            .map_err(|message| errors.at(text, format!("`{keyword}` {message}")))
            .ok();
    }
    match value.bare() {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => errors.at(
            number,
            format!("`{keyword}` needs a unit, for example `{keyword} = \"{}s\"`", number.base10_digits()),
        ),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
            errors.at(number, format!("`{keyword}` is written in quotes: `{keyword} = \"{number}\"`"));
        }
        other => errors.at(
            other,
            format!(
                "`{keyword}` is read at compile time; expected a string such as `{keyword} = \"30s\"`, \
                 or leave it out and set it on the handle"
            ),
        ),
    }
    None
}

/// A record that expires while its own lease runs would let a second body start beside the first.
fn ttl_outlives_lease(args: &Args, ttl: Option<u64>, lease: Option<u64>, errors: &mut Errors) {
    if let (Some(value), Some(ttl), Some(lease)) = (&args.ttl, ttl, lease)
        && ttl < lease
    {
        errors.at(
            &value.expr,
            "`ttl` is shorter than `lease`; a result must be kept at least as long as an attempt may run",
        );
    }
}

fn version(value: &Value, errors: &mut Errors) -> Option<u32> {
    let number = match value.bare() {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<u32>().ok(),
        _ => None,
    };
    let number = number.filter(|number| *number > 0);
    if number.is_none() {
        errors.at(
            &value.expr,
            "expected a whole number from 1 to 4294967295 for `version`, for example `version = 2`",
        );
    }
    number
}

/// One of the given words.
fn choice(
    value: Option<&Value>,
    words: &[(&str, &'static str)],
    errors: &mut Errors,
) -> Option<&'static str> {
    let value = value?;
    let quoted = value.string().map(syn::LitStr::value);
    let known = quoted.as_deref().and_then(|given| variant(given, words));
    if known.is_none() {
        let given = quoted.or_else(|| match value.bare() {
            Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
            _ => None,
        });
        errors.at(&value.expr, unknown_word(value, given.as_deref(), words, ""));
    }
    known
}

fn variant(given: &str, words: &[(&str, &'static str)]) -> Option<&'static str> {
    words.iter().find(|(word, _)| *word == given).map(|(_, variant)| *variant)
}

fn unknown_word(value: &Value, given: Option<&str>, words: &[(&str, &str)], more: &str) -> String {
    let names = || words.iter().map(|(word, _)| *word);
    let list: Vec<String> = names().map(|word| format!("`\"{word}\"`")).collect();
    let near = given.and_then(|given| suggest::closest(given, names()));
    let near = near.map(|near| format!("; did you mean `\"{near}\"`?")).unwrap_or_default();
    format!("expected {}{more} for `{}`{near}", list.join(", "), value.keyword)
}

/// `on_error = "retry" | "replay" | "refuse"`, or a function.
pub(super) fn on_error(args: &Args, function: &Function, errors: &mut Errors) -> Option<OnError> {
    let Some(value) = &args.on_error else {
        return Some(OnError::Policy("Retry", proc_macro2::Span::call_site()));
    };
    match (value.string(), value.bare()) {
        (Some(text), _) => {
            let known = variant(&text.value(), &ON_ERROR);
            if known.is_none() {
                errors
                    .at(text, unknown_word(value, Some(&text.value()), &ON_ERROR, " or a function of `&E`"));
            }
            known.map(|policy| match policy {
                "Replay" => OnError::Replay(text.span()),
                policy => OnError::Policy(policy, text.span()),
            })
        }
        (None, literal @ Expr::Lit(_)) => {
            errors.at(literal, unknown_word(value, None, &ON_ERROR, " or a function of `&E`"));
            None
        }
        (None, decide) => Some(OnError::Decide(in_body(decide.to_token_stream(), function))),
    }
}

/// `reconcile = expr`, a future: the runtime awaits it, so nothing in it has to.
pub(super) fn reconcile(args: &Args, function: &Function, errors: &mut Errors) -> Option<TokenStream> {
    let value = args.reconcile.as_ref()?;
    reconcile_or_on_crash(args, errors);
    control_flow::refuse_outside_blocks("reconcile", value.expr.to_token_stream(), errors);
    if let literal @ Expr::Lit(_) = value.bare() {
        errors.at(literal, "expected an expression that gives a future for `reconcile`, for example `reconcile = gateway.find(&order.id)`");
    }
    Some(in_body(value.bare().to_token_stream(), function))
}

/// Both say what follows a crash.
fn reconcile_or_on_crash(args: &Args, errors: &mut Errors) {
    // Beside `transaction` each of the two is already one too many.
    if let (Some(_), Some(on_crash), None) = (&args.reconcile, &args.on_crash, &args.transaction) {
        errors.at(
            &on_crash.keyword,
            "`on_crash` and `reconcile` exclude each other; `reconcile` already says what follows a crash",
        );
    }
}

/// `store = expr`
pub(super) fn handle(args: &Args, function: &Function, errors: &mut Errors) -> Handle {
    let Some(value) = &args.store else { return Handle::Current };
    control_flow::refuse("store", value.expr.to_token_stream(), errors);
    if let literal @ Expr::Lit(_) = value.bare() {
        errors.at(literal, "expected an expression that gives an `Idempotency` handle, for example `store = self.idempotency`");
    }
    Handle::Given(in_body(borrow(value.bare()), function))
}

/// Where the runtime crate is.
pub(super) fn runtime(args: &Args, errors: &mut Errors) -> Option<Runtime> {
    let Some(value) = &args.runtime else {
        return Some(Runtime::Dependency(manifest::runtime()));
    };
    let path = match (value.string(), value.bare()) {
        (Some(text), _) => text.parse_with(syn::Path::parse_mod_style).ok().map(ToTokens::into_token_stream),
        (None, Expr::Path(path)) if path.qself.is_none() => Some(path.to_token_stream()),
        _ => None,
    };
    if path.is_none() {
        errors.at(
            &value.expr,
            "expected a path for `crate`, for example `crate = \"::my_facade::idempotent_runtime\"`",
        );
    }
    path.map(Runtime::Given)
}

/// `&expr`, with parentheses where they are needed.
pub(super) fn borrow(expr: &Expr) -> TokenStream {
    // In the user's own context, so that a message about the whole points at what the user wrote.
    let ampersand = syn::Token![&](expr.span());
    let attrs = Vec::new();
    let reference =
        syn::ExprReference { attrs, and_token: ampersand, mutability: None, expr: Box::new(expr.clone()) };
    let mut tokens: Vec<TokenTree> = reference.into_token_stream().into_iter().collect();
    if let [_, TokenTree::Group(added)] = tokens.as_mut_slice()
        && added.delimiter() == Delimiter::Parenthesis
        && !matches!(expr, Expr::Paren(_) | Expr::Tuple(_))
    {
        // Located at the attribute, they would make all of it the place of the expression in them.
        added.set_span(expr.span());
    }
    tokens.into_iter().collect()
}

/// In a boxed body the receiver has another name; this gives it to an expression of the attribute.
pub(super) fn in_body(tokens: TokenStream, function: &Function) -> TokenStream {
    match &function.receiver {
        Some(receiver) if receiver != "self" => renamed(tokens, receiver),
        _ => tokens,
    }
}

fn renamed(tokens: TokenStream, receiver: &proc_macro2::Ident) -> TokenStream {
    let renamed = |token: TokenTree| match token {
        TokenTree::Ident(ident) if ident == "self" => {
            let mut own = receiver.clone();
            own.set_span(receiver.span().located_at(ident.span()));
            TokenTree::Ident(own)
        }
        TokenTree::Group(group) => {
            let mut own = proc_macro2::Group::new(group.delimiter(), renamed(group.stream(), receiver));
            own.set_span(group.span());
            TokenTree::Group(own)
        }
        token => token,
    };
    tokens.into_iter().map(renamed).collect()
}
