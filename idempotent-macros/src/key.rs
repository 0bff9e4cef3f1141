//! The values of `key` and `fingerprint`: selectors in quotes, a template, `*`, or expressions.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Expr, ExprLit, Lit, Member};

use crate::args::Value;
use crate::control_flow;
use crate::errors::Errors;
use crate::selector::Selector;

/// What makes two calls the same.
pub(crate) enum Key {
    /// `"*"`: all that is fingerprinted.
    Whole,
    Parts {
        /// The text around the holes of a template, `{}` for each; empty when it is none.
        template: String,
        parts: Vec<Part>,
    },
}

pub(crate) struct Part {
    /// As it is shown in errors.
    pub(crate) text: String,
    pub(crate) source: Source,
}

pub(crate) enum Source {
    /// In quotes, at this place.
    Selector(Selector, Span),
    Expression(Expr),
}

/// Reads `key = …`.
pub(crate) fn parse(value: &Value, errors: &mut Errors) -> Option<Key> {
    let Some(text) = value.string() else {
        let parts = expressions(value, errors)?;
        return Some(Key::Parts { template: String::new(), parts });
    };
    let (text, span) = (text.value(), text.span());
    let parsed = if text.trim() == "*" {
        Ok(Key::Whole)
    } else if text.contains(['{', '}']) {
        template(&text, span)
    } else {
        selectors(&text, span).map(|parts| Key::Parts { template: String::new(), parts })
    };
    report(value, span, parsed, errors)
}

/// Reads `fingerprint = …`.
pub(crate) fn parse_fingerprint(value: &Value, errors: &mut Errors) -> Option<Vec<Part>> {
    match value.string() {
        Some(text) if text.value().contains(['{', '}']) => {
            let message =
                "a template is for `key`; name the values, for example `order.amount, order.currency`";
            report(value, text.span(), Err(message.to_owned()), errors)
        }
        Some(text) if text.value().trim() == "*" => {
            let message =
                "`*` is for `key`; all arguments count where there is no `fingerprint`, so leave it out";
            report(value, text.span(), Err(message.to_owned()), errors)
        }
        Some(text) => report(value, text.span(), selectors(&text.value(), text.span()), errors),
        None => expressions(value, errors),
    }
}

fn report<T>(value: &Value, span: Span, parsed: Result<T, String>, errors: &mut Errors) -> Option<T> {
    parsed
        .map_err(|message| errors.at_span(span, format!("cannot parse `{}`: {message}", value.keyword)))
        .ok()
}

/// `order.id, tenant.id`
fn selectors(text: &str, span: Span) -> Result<Vec<Part>, String> {
    let mut parts: Vec<Part> = Vec::new();
    for word in text.split(',') {
        if word.trim() == "*" {
            return Err("`*` stands alone: it means all fingerprinted arguments".into());
        }
        let part = quoted(word, span)?;
        if parts.iter().any(|earlier| earlier.text == part.text) {
            return Err(format!("`{}` is named twice", part.text));
        }
        parts.push(part);
    }
    Ok(parts)
}

fn quoted(word: &str, span: Span) -> Result<Part, String> {
    let selector = Selector::parse(word)?;
    Ok(Part { text: selector.text.clone(), source: Source::Selector(selector, span) })
}

/// `charge-{order.id}`, with `{{` and `}}` for braces.
fn template(text: &str, span: Span) -> Result<Key, String> {
    let mut template = String::new();
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, after) = rest.split_at(at);
        template.push_str(literal);
        if let Some(brace) = ["{{", "}}"].into_iter().find(|brace| after.starts_with(brace)) {
            // Kept doubled: the text must not read like a hole.
            template.push_str(brace);
            rest = after.get(2..).unwrap_or_default();
        } else if let Some(hole) = after.strip_prefix('{') {
            let (word, after) = hole.split_once('}').ok_or("`{` is not closed; write `{{` for a brace")?;
            if word.trim().is_empty() {
                return Err("`{}` names nothing; write a selector in it, for example `{order.id}`".into());
            }
            if let Some((selector, format)) = word.split_once(':')
                && !format.starts_with(':')
            {
                return Err(format!(
                    "`{{{word}}}` has a format, and a key takes the value itself; write `{{{}}}`",
                    selector.trim()
                ));
            }
            parts.push(quoted(word, span)?);
            template.push_str("{}");
            rest = after;
        } else {
            return Err("`}` closes nothing; write `}}` for a brace".into());
        }
    }
    template.push_str(rest);
    if parts.is_empty() {
        return Err("the template has no hole, so all calls would share one key".into());
    }
    Ok(Key::Parts { template, parts })
}

/// `order.id`, `(tenant.id, order.id)`, `order.id.to_string()`: a tuple is several parts.
fn expressions(value: &Value, errors: &mut Errors) -> Option<Vec<Part>> {
    control_flow::refuse(&value.keyword.to_string(), value.expr.to_token_stream(), errors);
    let all: Vec<&Expr> = match ungrouped(&value.expr) {
        Expr::Tuple(tuple) => tuple.elems.iter().map(ungrouped).collect(),
        expr => vec![expr],
    };
    let mut varies = !all.is_empty();
    for expr in all.iter().copied().filter(|expr| is_constant(expr)) {
        errors.at(expr, constant(expr, value, all.len() > 1));
        varies = false;
    }
    if all.is_empty() || all.iter().any(|expr| is_empty_block(expr)) {
        errors.at(&value.expr, format!("`{}` names nothing", value.keyword));
        varies = false;
    }
    for (index, expr) in all.iter().enumerate() {
        let is_same = |earlier: &&Expr| as_selector(earlier) == as_selector(expr);
        if let Some(text) = as_selector(expr)
            && all.iter().take(index).any(is_same)
        {
            errors.at(expr, format!("`{text}` is named twice"));
        }
    }
    let part = |expr: &Expr| Part { text: shown(expr), source: Source::Expression(expr.clone()) };
    varies.then(|| all.into_iter().map(part).collect())
}

fn constant(expr: &Expr, value: &Value, among_others: bool) -> String {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. })
            if among_others && Selector::parse(&text.value()).is_ok() =>
        {
            format!(
                "a string among others is itself, and the same for every call; without quotes, `{}` is a value",
                text.value()
            )
        }
        _ if among_others => {
            "this is the same for every call, so it says nothing in a key; leave it out".to_owned()
        }
        _ => format!("expected a string literal or an expression over the arguments for `{}`", value.keyword),
    }
}

/// Written in the source, so the same for every call. `concat!("order", ".id")` looks like a selector, and is none.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Macro(call) => call.mac.path.segments.last().is_some_and(|name| {
            ["concat", "stringify", "env", "option_env", "include_str", "module_path", "file", "line"]
                .iter()
                .any(|constant| name.ident == constant)
        }),
        _ => false,
    }
}

fn is_empty_block(expr: &Expr) -> bool {
    matches!(expr, Expr::Block(block) if block.block.stmts.is_empty())
}

fn ungrouped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => ungrouped(&group.expr),
        Expr::Paren(paren) => ungrouped(&paren.expr),
        expr => expr,
    }
}

/// The expression as its author would write it, where it is a selector without quotes.
fn shown(expr: &Expr) -> String {
    as_selector(expr).unwrap_or_else(|| expr.to_token_stream().to_string())
}

fn as_selector(expr: &Expr) -> Option<String> {
    match ungrouped(expr) {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => {
            let base = as_selector(&field.base)?;
            Some(match &field.member {
                Member::Named(name) => format!("{base}.{name}"),
                Member::Unnamed(index) => format!("{base}.{}", index.index),
            })
        }
        Expr::MethodCall(call) if call.args.is_empty() && call.turbofish.is_none() => {
            Some(format!("{}.{}()", as_selector(&call.receiver)?, call.method))
        }
        _ => None,
    }
}

impl Value {
    /// The string literal that this is, also where a `macro_rules!` fragment hides it in a group.
    pub(crate) fn string(&self) -> Option<&syn::LitStr> {
        match ungrouped(&self.expr) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
            _ => None,
        }
    }

    /// The value without the groups that `macro_rules!` put around it.
    pub(crate) fn bare(&self) -> &Expr {
        ungrouped(&self.expr)
    }
}
