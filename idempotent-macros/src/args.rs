//! What the attribute says: every option with its keyword and its value, nothing judged yet.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, Lit, Token};

use crate::errors::Errors;
use crate::{duration, skip, suggest};

/// `keyword = expr`
pub(crate) struct Value {
    pub(crate) keyword: Ident,
    pub(crate) expr: Expr,
}

/// `skip(path, path)`
pub(crate) struct Skips {
    pub(crate) keyword: Ident,
    pub(crate) paths: Vec<skip::Path>,
}

#[derive(Default)]
pub(crate) struct Args {
    pub(crate) key: Option<Value>,
    pub(crate) ttl: Option<Value>,
    pub(crate) name: Option<Value>,
    pub(crate) skip: Option<Skips>,
    pub(crate) fingerprint: Option<Value>,
    pub(crate) store: Option<Value>,
    pub(crate) lease: Option<Value>,
    pub(crate) wait: Option<Value>,
    pub(crate) on_error: Option<Value>,
    pub(crate) on_crash: Option<Value>,
    pub(crate) reconcile: Option<Value>,
    pub(crate) on_missing_key: Option<Value>,
    pub(crate) version: Option<Value>,
    pub(crate) detached: Option<Ident>,
    pub(crate) transaction: Option<Value>,
    pub(crate) runtime: Option<Value>,
    /// Something was said that could not be read, perhaps the key.
    pub(crate) unreadable: bool,
}

const OPTIONS: [&str; 16] = [
    "key",
    "ttl",
    "name",
    "skip",
    "fingerprint",
    "store",
    "lease",
    "wait",
    "on_error",
    "on_crash",
    "reconcile",
    "on_missing_key",
    "version",
    "detached",
    "transaction",
    "crate",
];

/// Spellings of other libraries, and what they are called here.
const GUESSED: [(&str, &str); 31] = [
    ("id", "key"),
    ("keys", "key"),
    ("idempotency_key", "key"),
    ("expires", "ttl"),
    ("expiry", "ttl"),
    ("expire", "ttl"),
    ("time", "ttl"),
    ("retention", "ttl"),
    ("operation", "name"),
    ("ignore", "skip"),
    ("exclude", "skip"),
    ("skip_all", "skip"),
    ("fields", "fingerprint"),
    ("include", "fingerprint"),
    ("timeout", "lease"),
    ("on_panic", "on_crash"),
    ("krate", "crate"),
    ("by", "key"),
    ("time_to_live", "ttl"),
    ("duration", "ttl"),
    ("prefix", "name"),
    ("handle", "store"),
    ("idempotency", "store"),
    ("backend", "store"),
    ("storage", "store"),
    ("hash", "fingerprint"),
    ("on_err", "on_error"),
    ("on_failure", "on_error"),
    ("spawn", "detached"),
    ("background", "detached"),
    ("connection", "transaction"),
];

/// Reads all options. A bad one is reported and passed over, so that the next one is read too.
pub(crate) fn parse(tokens: proc_macro2::TokenStream, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    let options = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Err(error) = args.option(input, errors).and_then(|()| comma(input)) {
                errors.add(error);
                args.unreadable = true;
                pass_over(input)?;
            }
        }
        Ok(())
    };
    if let Err(error) = options.parse2(tokens) {
        errors.add(error);
    }
    args
}

/// The comma after an option or a path. Without it the next option is still read, where one follows.
fn comma(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() || input.parse::<Option<Token![,]>>()?.is_some() {
        return Ok(());
    }
    Err(input.error("expected `,`"))
}

/// Goes on to where an option may begin: `name = `, `name(`, or `name` before a comma or the end.
fn pass_over(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() {
        let comma = input.parse::<Option<Token![,]>>()?.is_some();
        if comma || option_begins(input) {
            return Ok(());
        }
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

fn option_begins(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.call(Ident::parse_any).is_ok_and(|name| OPTIONS.iter().any(|option| name == option))
        && (ahead.is_empty()
            || ahead.peek(Token![=])
            || ahead.peek(syn::token::Paren)
            || ahead.peek(Token![,]))
}

impl Args {
    fn option(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        self.value_has_a_keyword(input)?;
        let keyword = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(error.span(), "expected an option, for example `key = \"order.id\"`")
        })?;
        match keyword.unraw().to_string().as_str() {
            "skip" => {
                let paths = skips(&keyword, input, errors)?;
                once(&mut self.skip, Skips { keyword: keyword.clone(), paths }, &keyword, errors);
            }
            "detached" => {
                if input.peek(Token![=]) || input.peek(syn::token::Paren) {
                    return Err(input.error("`detached` takes no value"));
                }
                once(&mut self.detached, keyword.clone(), &keyword, errors);
            }
            name => {
                if let Some(slot) = self.slot(name) {
                    let expr = value(&keyword, input)?;
                    once(slot, Value { keyword: keyword.clone(), expr }, &keyword, errors);
                } else {
                    let meant = meant(name);
                    // What it says may be the key, which is then not missing.
                    let stands_alone = input.is_empty() || input.peek(Token![,]);
                    self.unreadable |= meant == Some("key") || (self.key.is_none() && stands_alone);
                    errors.at(&keyword, unknown(name, meant, stands_alone && self.key.is_none()));
                    unknown_value(input)?;
                }
            }
        }
        Ok(())
    }

    /// `#[idempotent("order.id")]` and `#[idempotent(order.id)]`: what is meant is clear, and how it is written is not.
    fn value_has_a_keyword(&self, input: ParseStream<'_>) -> syn::Result<()> {
        let names_a_value = input.peek(syn::LitStr) || (input.peek(syn::Ident) && input.peek2(Token![.]));
        if !names_a_value {
            return Ok(());
        }
        let written = input.fork().parse::<Expr>()?;
        let corrected = match (&self.key, &written) {
            (_, Expr::Lit(literal)) if duration_in(literal) => {
                format!("for how long a result is kept write `ttl = {}`", shown(&written))
            }
            (None, _) => format!("for the key write `key = {}`", shown(&written)),
            (Some(key), _) => match (key.string(), &written) {
                (Some(first), Expr::Lit(ExprLit { lit: Lit::Str(second), .. })) => {
                    format!(
                        "several values of a key are one string, `key = \"{}, {}\"`",
                        first.value(),
                        second.value()
                    )
                }
                _ => format!(
                    "several values of a key stand in parentheses, `key = ({}, {})`",
                    shown(key.bare()),
                    shown(&written)
                ),
            },
        };
        Err(syn::Error::new_spanned(written, format!("expected an option; {corrected}")))
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<Value>> {
        Some(match name {
            "key" => &mut self.key,
            "ttl" => &mut self.ttl,
            "name" => &mut self.name,
            "fingerprint" => &mut self.fingerprint,
            "store" => &mut self.store,
            "lease" => &mut self.lease,
            "wait" => &mut self.wait,
            "on_error" => &mut self.on_error,
            "on_crash" => &mut self.on_crash,
            "reconcile" => &mut self.reconcile,
            "on_missing_key" => &mut self.on_missing_key,
            "version" => &mut self.version,
            "transaction" => &mut self.transaction,
            "crate" => &mut self.runtime,
            _ => return None,
        })
    }
}

fn duration_in(literal: &ExprLit) -> bool {
    matches!(&literal.lit, Lit::Str(text) if duration::milliseconds(&text.value()).is_ok())
}

/// The expression, a selector without white space.
fn shown(expr: &Expr) -> String {
    let text = expr.to_token_stream().to_string();
    if matches!(expr, Expr::Lit(_)) { text } else { text.replace(' ', "") }
}

fn once<T>(slot: &mut Option<T>, value: T, keyword: &Ident, errors: &mut Errors) {
    if slot.is_some() {
        errors.at(keyword, format!("`{keyword}` is given more than once"));
    } else {
        *slot = Some(value);
    }
}

/// The option that an unknown name was probably meant to be.
fn meant(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let guessed = GUESSED.iter().find(|(guess, _)| *guess == name).map(|(_, option)| *option);
    guessed.or_else(|| suggest::closest(&name, OPTIONS))
}

fn unknown(name: &str, meant: Option<&str>, perhaps_the_key: bool) -> String {
    match meant {
        Some(option) => format!("unknown option `{name}`; did you mean `{option}`?"),
        None if perhaps_the_key => {
            format!("unknown option `{name}`; if it is the key, write `key = {name}`")
        }
        None => format!("unknown option `{name}`; expected one of {}", suggest::list(OPTIONS)),
    }
}

/// The value of an option that nobody knows, read so that what follows can be.
fn unknown_value(input: ParseStream<'_>) -> syn::Result<()> {
    if input.parse::<Option<Token![=]>>()?.is_some() {
        input.parse::<Expr>()?;
    } else if input.peek(syn::token::Paren) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

/// `= expr`
fn value(keyword: &Ident, input: ParseStream<'_>) -> syn::Result<Expr> {
    let example = match keyword.to_string().as_str() {
        "key" | "fingerprint" => "\"order.id\"",
        "ttl" => "\"24h\"",
        "lease" => "\"30s\"",
        "wait" => "\"5s\"",
        "name" => "\"charge\"",
        "version" => "2",
        "store" => "self.idempotency",
        "on_error" => "\"retry\"",
        "on_crash" => "\"refuse\"",
        "reconcile" => "gateway.find(&order.id)",
        "on_missing_key" => "\"error\"",
        "transaction" => "tx",
        _ => "::my_facade::idempotent_runtime",
    };
    if !input.peek(Token![=]) || input.peek(Token![==]) || input.peek(Token![=>]) {
        let message = format!("expected `=` after `{keyword}`; for example `{keyword} = {example}`");
        // At the end of the input there is no token to point at but the keyword.
        let span = if input.is_empty() { keyword.span() } else { input.span() };
        return Err(syn::Error::new(span, message));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(syn::Error::new(
            keyword.span(),
            format!("`{keyword}` has no value; for example `{keyword} = {example}`"),
        ));
    }
    let written: proc_macro2::TokenStream = input.fork().parse()?;
    input.parse().map_err(|error| {
        if input.is_empty() {
            // The error stands behind the last token, which is nowhere.
            return syn::Error::new_spanned(written, format!("cannot parse `{keyword}`: {error}"));
        }
        error
    })
}

fn skips(keyword: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Vec<skip::Path>> {
    if !input.peek(syn::token::Paren) {
        let message = "`skip` takes a list in parentheses, for example `skip(gateway, order.requested_at)`";
        let span = if input.is_empty() { keyword.span() } else { input.span() };
        return Err(syn::Error::new(span, message));
    }
    let content;
    syn::parenthesized!(content in input);
    if content.is_empty() {
        return Err(syn::Error::new(keyword.span(), "`skip` names nothing; leave it out"));
    }
    let mut paths = Vec::new();
    while !content.is_empty() {
        match content.parse().and_then(|path| comma(&content).map(|()| path)) {
            Ok(path) => paths.push(path),
            Err(error) => {
                errors.add(error);
                while !content.is_empty() && content.parse::<Option<Token![,]>>()?.is_none() {
                    content.parse::<proc_macro2::TokenTree>()?;
                }
            }
        }
    }
    Ok(paths)
}
