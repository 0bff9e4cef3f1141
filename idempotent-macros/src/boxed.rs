//! The shape that `#[async_trait]` gives a method before its inner attributes expand:
//!
//! ```text
//! fn charge<'life0, 'async_trait>(&'life0 self, __arg1: Json<Order>)
//!     -> Pin<Box<dyn Future<Output = Result<Receipt, Error>> + Send + 'async_trait>>
//! where … {
//!     Box::pin(async move {
//!         if let Some(__ret) = None::<Result<Receipt, Error>> { #[allow(unreachable_code)] return __ret; }
//!         let __self = self;
//!         let Json(order) = { let __arg1 = __arg1; __arg1 };
//!         let __ret: Result<Receipt, Error> = { …the body… };
//!         #[allow(unreachable_code)] __ret
//!     })
//! }
//! ```
//!
//! The call is wrapped inside the async block, after the statements that give the arguments their names: these are the
//! *prelude*.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::{GenericArgument, Pat, PathArguments, ReturnType, Type, TypeParamBound};

use crate::function::{Body, Frame};

/// A statement `let pattern = argument;` of the prelude.
pub(crate) struct Rebound {
    argument: String,
    pattern: Pat,
}

/// `R` in `Pin<Box<dyn Future<Output = R> + …>>`.
pub(crate) fn output(returned: &ReturnType) -> Option<Type> {
    let ReturnType::Type(_, ty) = returned else { return None };
    let boxed = only_argument(ty, "Pin")?;
    let Type::TraitObject(object) = only_argument(boxed, "Box")? else { return None };
    object.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let future = bound.path.segments.last().filter(|segment| segment.ident == "Future")?;
        let PathArguments::AngleBracketed(arguments) = &future.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => Some(output.ty.clone()),
            _ => None,
        })
    })
}

/// `T` in `Name<T>`.
fn only_argument<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The parts of `{ Box::pin(async move { … }) }`.
pub(crate) fn body(block: &Group) -> Option<Body> {
    let outer: Vec<TokenTree> = block.stream().into_iter().collect();
    let (TokenTree::Group(call), path) = outer.split_last()? else { return None };
    let pin = path.last().is_some_and(|token| matches!(token, TokenTree::Ident(name) if name == "pin"));
    if !pin || call.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let argument: Vec<TokenTree> = call.stream().into_iter().collect();
    let (TokenTree::Group(inner), keywords) = argument.split_last()? else { return None };
    let is_async =
        keywords.first().is_some_and(|token| matches!(token, TokenTree::Ident(name) if name == "async"));
    if !is_async || inner.delimiter() != Delimiter::Brace {
        return None;
    }
    let statements: Vec<TokenTree> = inner.stream().into_iter().collect();
    let (prelude, rest) = statements.split_at(prelude_length(&statements));
    let mut own = Group::new(Delimiter::Brace, rest.iter().cloned().collect());
    own.set_span(inner.span());
    Some(Body {
        place: inner.span(),
        inner_attributes: TokenStream::new(),
        prelude: prelude.iter().cloned().collect(),
        block: own,
        frame: Frame::Boxed {
            braces: block.span(),
            call: path.iter().cloned().collect(),
            parentheses: call.span(),
            keywords: keywords.iter().cloned().collect(),
            block: inner.span(),
        },
    })
}

/// How many tokens at the beginning are the pinned return type and `let pattern = argument;`.
fn prelude_length(tokens: &[TokenTree]) -> usize {
    let mut end = pinned_return(tokens);
    while let Some(length) = tokens.get(end..).and_then(statement) {
        end += length;
    }
    end
}

/// `if let … { … return __ret; }`
fn pinned_return(tokens: &[TokenTree]) -> usize {
    let pinned = tokens.first().is_some_and(|token| is_ident(token, "if"))
        && tokens.get(1).is_some_and(|token| is_ident(token, "let"));
    let block = tokens.iter().position(|token| matches!(token, TokenTree::Group(group)
        if group.delimiter() == Delimiter::Brace && group.stream().into_iter().any(|token| is_ident(&token, "__ret"))));
    if pinned { block.map_or(0, |block| block + 1) } else { 0 }
}

/// The length of `let pattern = argument;` at the beginning.
fn statement(tokens: &[TokenTree]) -> Option<usize> {
    let end = tokens.iter().position(|token| is_punct(token, ';'))?;
    let statement = tokens.get(..end)?;
    rebinding(statement)?;
    Some(end + 1)
}

/// Reads `#[cfg(…)] let pattern = argument` or `let pattern = { let argument = argument; argument }`.
fn rebinding(statement: &[TokenTree]) -> Option<Rebound> {
    let start = statement.iter().position(|token| is_ident(token, "let"))?;
    let attributes = statement.get(..start)?;
    let equals = statement.iter().position(|token| is_punct(token, '='))?;
    let pattern: TokenStream = statement.get(start + 1..equals)?.iter().cloned().collect();
    let [value] = statement.get(equals + 1..)? else { return None };
    let argument = match value {
        TokenTree::Ident(name) => name.to_string(),
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            let [.., TokenTree::Punct(end), TokenTree::Ident(name)] = tokens.as_slice() else { return None };
            (end.as_char() == ';' && tokens.len() == 6).then(|| name.to_string())?
        }
        _ => return None,
    };
    let only_attributes = attributes.iter().all(|token| {
        is_punct(token, '#')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
    });
    let pattern = only_attributes.then(|| Pat::parse_single.parse2(pattern).ok())??;
    Some(Rebound { argument, pattern })
}

/// The statements of a prelude.
pub(crate) fn rebound(prelude: &TokenStream) -> Vec<Rebound> {
    let tokens: Vec<TokenTree> = prelude.clone().into_iter().collect();
    let skipped = pinned_return(&tokens);
    tokens
        .get(skipped..)
        .unwrap_or_default()
        .split(|token| is_punct(token, ';'))
        .filter_map(rebinding)
        .collect()
}

/// What the prelude makes of an argument.
pub(crate) fn pattern_of<'a>(rebound: &'a [Rebound], argument: &Ident) -> Option<&'a Pat> {
    rebound.iter().find(|statement| *argument == statement.argument).map(|statement| &statement.pattern)
}

/// What the prelude calls an argument.
pub(crate) fn ident_of(rebound: &[Rebound], argument: &Ident) -> Option<Ident> {
    match pattern_of(rebound, argument)? {
        Pat::Ident(name) => Some(name.ident.clone()),
        _ => None,
    }
}

/// `let __arg1 = __arg1;` stands for an argument `_`.
pub(crate) fn is_unnamed(pattern: &Pat, rebound: &[Rebound]) -> bool {
    let Pat::Ident(name) = pattern else { return false };
    let name = name.ident.to_string();
    let digits = name.strip_prefix("__arg").unwrap_or_default();
    !rebound.is_empty() && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}
