//! Selectors: `order.id`, `pair.0`, `order.id()`, `self.tenant` — an argument, and the way from it to a value.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;

/// A parsed selector. Whether its root is an argument is for `checked` to say.
#[derive(Debug)]
pub(crate) struct Selector {
    /// As it is shown in errors: without white space.
    pub(crate) text: String,
    pub(crate) root: String,
    path: Vec<Segment>,
}

#[derive(Debug)]
enum Segment {
    Field(Ident),
    Index(u32),
    Method(Ident),
}

impl Selector {
    /// The selector in `text`, or what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split('.').map(str::trim);
        let first = words.next().unwrap_or_default();
        let root = match first {
            "" if text.trim().is_empty() => {
                return Err("expected an argument name, for example `order.id`".into());
            }
            "" => return Err(format!("expected an argument name before `{}`", text.trim())),
            "self" => first.to_owned(),
            _ => identifier(first).ok_or_else(|| refused(first))?.unraw().to_string(),
        };
        let mut selector = Self { text: root.clone(), root, path: Vec::new() };
        for word in words {
            if word.is_empty() {
                return Err(format!("unexpected end of input after `{}.`", selector.text));
            }
            selector.path.push(Segment::parse(word)?);
            selector.text.push('.');
            selector.text.push_str(word);
        }
        Ok(selector)
    }

    /// Input: the selector `order.id`, and the identifier that the signature binds as `order`.
    /// Output: `order.id`, located at `span`.
    pub(crate) fn value(&self, root: &Ident, span: Span) -> TokenStream {
        // The hygiene of the signature's own identifier, so that it resolves in functions made by `macro_rules!` too.
        let mut root = root.clone();
        root.set_span(root.span().located_at(span));
        let mut value = quote_spanned!(span=> #root);
        for segment in &self.path {
            value.extend(match segment {
                Segment::Field(name) => {
                    let name = at(name, Span::mixed_site().located_at(span));
                    quote_spanned!(span=> .#name)
                }
                Segment::Index(index) => {
                    let mut index = Literal::u32_unsuffixed(*index);
                    index.set_span(span);
                    quote_spanned!(span=> .#index)
                }
                Segment::Method(name) => {
                    let name = at(name, Span::mixed_site().located_at(span));
                    quote_spanned!(span=> .#name())
                }
            });
        }
        value
    }
}

impl Segment {
    fn parse(word: &str) -> Result<Self, String> {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            let index = word.parse().map_err(|_| format!("the index `{word}` is too large"))?;
            return Ok(Self::Index(index));
        }
        let method = word.strip_suffix(')').map(str::trim_end).and_then(|word| word.strip_suffix('('));
        match method {
            Some(name) => identifier(name.trim()).map(Self::Method),
            None => identifier(word).map(Self::Field),
        }
        .ok_or_else(|| refused(word))
    }
}

fn refused(word: &str) -> String {
    let mut words = word.split_whitespace();
    if let (Some(first), Some(second), true) =
        (words.next(), words.next(), word.split_whitespace().all(is_name))
    {
        return format!("expected `.` or `,` between `{first}` and `{second}`");
    }
    if word.contains(['(', '[', '&', '?', ':', '<', '|', ' ']) {
        return format!(
            "`{word}` is more than a field or a method without arguments; write the expression without quotes"
        );
    }
    format!("`{word}` is not a field name")
}

/// The identifier in `word`. A keyword can only mean the raw identifier: `order.type` is `order.r#type`.
fn identifier(word: &str) -> Option<Ident> {
    let fits = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '#');
    if !fits {
        return None;
    }
    let raw = || syn::parse_str(&format!("r#{word}"));
    syn::parse_str::<Ident>(word).or_else(|_| raw()).ok()
}

/// Not for a keyword: `order.id as u64` is an expression.
fn is_name(word: &str) -> bool {
    syn::parse_str::<Ident>(word).is_ok()
}

fn at(name: &Ident, span: Span) -> Ident {
    let mut name = name.clone();
    name.set_span(span);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let selector = Selector::parse(text).expect(text);
        let root = Ident::new(&selector.root, Span::call_site());
        selector.value(&root, Span::call_site()).to_string().replace(' ', "")
    }

    #[test]
    fn follows_fields_indices_and_methods() {
        assert_eq!(shown("order"), "order");
        assert_eq!(shown(" order . id "), "order.id");
        assert_eq!(shown("self.tenant.id"), "self.tenant.id");
        assert_eq!(shown("pair.0.1"), "pair.0.1");
        assert_eq!(shown("order.id()"), "order.id()");
        assert_eq!(shown("order.r#type"), "order.r#type");
        assert_eq!(shown("order.type"), "order.r#type");
        assert_eq!(shown("größe.länge"), "größe.länge");
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, word) in [
            ("", "expected an argument name"),
            (".id", "before `.id`"),
            ("order.", "unexpected end of input after `order.`"),
            ("order..id", "unexpected end of input after `order.`"),
            ("order.id(x)", "without quotes"),
            ("order.lines[0]", "without quotes"),
            ("&order", "without quotes"),
            ("order id", "between `order` and `id`"),
            ("order.id as u32", "without quotes"),
            ("order-id", "not a field name"),
            ("9", "not a field name"),
            ("order.self", "not a field name"),
            ("order.99999999999", "too large"),
        ] {
            let message = Selector::parse(text).expect_err(text);
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
