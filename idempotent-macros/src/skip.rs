//! `skip(gateway, order.requested_at, "order.requested-at")`: what is left out of the fingerprint.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{LitStr, Token};

/// An argument, and the serialized names from it down to what is left out.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) argument: String,
    pub(crate) names: Vec<String>,
    /// Of the first word, or of the literal.
    pub(crate) span: Span,
}

impl Path {
    pub(crate) fn text(&self) -> String {
        std::iter::once(&self.argument).chain(&self.names).map(String::as_str).collect::<Vec<_>>().join(".")
    }

    /// Whether all that `other` names is in what this names.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.argument == other.argument && other.names.starts_with(&self.names)
    }
}

impl Parse for Path {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            return quoted(&input.parse()?);
        }
        let first = word(input)?;
        let mut path = Self { argument: first.unraw().to_string(), names: Vec::new(), span: first.span() };
        while input.peek(Token![.]) {
            input.parse::<Token![.]>()?;
            path.names.push(word(input)?.unraw().to_string());
        }
        Ok(path)
    }
}

fn word(input: ParseStream<'_>) -> syn::Result<Ident> {
    // A keyword can be a serialized name: `order.type`.
    input.call(Ident::parse_any).map_err(|error| {
        let hint = "expected an argument or a serialized name below it; quote what is no identifier, \
                    for example `skip(\"order.requested-at\")`";
        syn::Error::new(error.span(), hint)
    })
}

fn quoted(literal: &LitStr) -> syn::Result<Path> {
    let text = literal.value();
    let mut names = text.split('.').map(|name| name.trim().to_owned());
    let argument = names.next().unwrap_or_default();
    let names: Vec<String> = names.collect();
    if argument.is_empty() || names.iter().any(String::is_empty) {
        let message =
            "expected an argument and the serialized names below it, for example `\"order.requested-at\"`";
        return Err(syn::Error::new(literal.span(), message));
    }
    let argument = argument.strip_prefix("r#").map(str::to_owned).unwrap_or(argument);
    Ok(Path { argument, names, span: literal.span() })
}
