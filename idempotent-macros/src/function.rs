//! The annotated function: its signature understood, its body as tokens.
//!
//! The body is never parsed, so that a half-typed one still expands and an editor can complete in it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, FnArg, Pat, ReturnType, Signature, Type, Visibility};

use crate::boxed;
use crate::errors::Errors;
use crate::patterns::{self, Binding};

/// A function that can be annotated.
pub(crate) struct Function {
    /// Everything before the body, as it was written.
    pub(crate) head: TokenStream,
    pub(crate) signature: Signature,
    /// What the body names the receiver: `self`, or `__self` in a boxed one.
    pub(crate) receiver: Option<Ident>,
    pub(crate) bindings: Vec<Binding>,
    /// Arguments that bind no name.
    pub(crate) unnamed: Vec<Pat>,
    /// What the function returns once it is awaited; `None` where it is not written.
    pub(crate) output: Option<Type>,
    pub(crate) body: Body,
}

pub(crate) struct Body {
    /// `#![allow(…)]` at its beginning: they stay in front.
    pub(crate) inner_attributes: TokenStream,
    /// What a desugaring put before the user's own statements.
    pub(crate) prelude: TokenStream,
    /// The user's statements, in their own braces.
    pub(crate) block: Group,
    pub(crate) frame: Frame,
    /// Where messages about the whole body belong: at `async`.
    pub(crate) place: Span,
}

/// What stands around the statements.
pub(crate) enum Frame {
    /// `{ … }` of an `async fn`.
    Braces(Span),
    /// `{ Box::pin(async move { … }) }`, from the outside to the inside.
    Boxed { braces: Span, call: TokenStream, parentheses: Span, keywords: TokenStream, block: Span },
}

impl Function {
    /// The function in `item`, if it is one that can be annotated. What is wrong with it is reported.
    pub(crate) fn parse(item: &TokenStream, errors: &mut Errors) -> Option<Self> {
        let tokens = unwrapped(item.clone());
        if let Some((keyword, name)) = other_item(&tokens) {
            let hint = if name == "impl" { "; apply it to each method" } else { "" };
            errors.at(&keyword, format!("`#[idempotent]` can only be applied to `async fn`{hint}"));
            return None;
        }
        let (last, head) = tokens.split_last()?;
        let head: TokenStream = head.iter().cloned().collect();
        let (attributes, signature) = match Head::parse.parse2(head.clone()) {
            Ok(Head { attributes, signature }) => (attributes, signature),
            Err(error) => {
                errors.add(error);
                return None;
            }
        };
        if let Some(attribute) = attributes.iter().find(|attribute| is_ours(attribute)) {
            errors.at(attribute, "`#[idempotent]` is given more than once");
        }
        let Some(block) = body(last) else {
            errors.at(last, "expected a function body; put `#[idempotent]` on the implementation");
            return None;
        };
        Self::new(head, signature, &block, errors)
    }

    fn new(head: TokenStream, signature: Signature, block: &Group, errors: &mut Errors) -> Option<Self> {
        let (body, output) = if let Some(keyword) = &signature.asyncness {
            let output = match &signature.output {
                ReturnType::Default => None,
                ReturnType::Type(_, ty) => Some(Type::clone(ty)),
            };
            (Body::of_async(block, keyword.span), output)
        } else if let Some(output) = boxed::output(&signature.output) {
            let Some(body) = boxed::body(block) else {
                let message = "`#[idempotent]` on a function that returns a boxed future expects the body \
                               `Box::pin(async move { .. })`; write `async fn` instead";
                errors.at(&signature.fn_token, message);
                return None;
            };
            (body, Some(output))
        } else {
            errors.at(&signature.fn_token, "`#[idempotent]` needs `async fn`");
            return None;
        };
        let mut function =
            Self { head, receiver: None, bindings: Vec::new(), unnamed: Vec::new(), output, body, signature };
        function.bind();
        Some(function)
    }

    /// Whether an argument has this name, or a part of one.
    pub(crate) fn binds(&self, name: &str) -> bool {
        self.bindings.iter().any(|binding| binding.name == name)
    }

    /// Finds the names that the user's statements see for the arguments.
    fn bind(&mut self) {
        let rebound = boxed::rebound(&self.body.prelude);
        for argument in &self.signature.inputs {
            match argument {
                FnArg::Receiver(receiver) => {
                    let own = Ident::new("self", receiver.self_token.span);
                    let named = boxed::ident_of(&rebound, &own);
                    self.receiver = Some(named.unwrap_or(own));
                }
                FnArg::Typed(typed) => {
                    let pat = match &*typed.pat {
                        Pat::Ident(name) => boxed::pattern_of(&rebound, &name.ident).unwrap_or(&typed.pat),
                        pat => pat,
                    };
                    let found = patterns::bindings(pat, &typed.ty, &typed.attrs);
                    if found.is_empty() || boxed::is_unnamed(pat, &rebound) {
                        self.unnamed.push(pat.clone());
                    } else {
                        self.bindings.extend(found);
                    }
                }
            }
        }
    }
}

impl Body {
    fn of_async(block: &Group, place: Span) -> Self {
        let (inner_attributes, block_without) = split_inner_attributes(block);
        Self {
            inner_attributes,
            prelude: TokenStream::new(),
            block: block_without,
            frame: Frame::Braces(block.span()),
            place,
        }
    }
}

/// What stands before the body.
struct Head {
    attributes: Vec<Attribute>,
    signature: Signature,
}

impl Parse for Head {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        input.parse::<Visibility>()?;
        let signature = input.parse()?;
        Ok(Self { attributes, signature })
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "idempotent")
}

/// The tokens of the item, out of the group in which a `$item:item` fragment comes.
fn unwrapped(item: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => unwrapped(group.stream()),
        _ => tokens,
    }
}

/// The braces of the body, out of the group in which a `$body:block` fragment comes.
fn body(last: &TokenTree) -> Option<Group> {
    let TokenTree::Group(group) = last else { return None };
    match group.delimiter() {
        Delimiter::Brace => Some(group.clone()),
        Delimiter::None => match unwrapped(group.stream()).as_slice() {
            [only] => body(only),
            _ => None,
        },
        _ => None,
    }
}

/// The keyword of an item that is no function, and its text.
fn other_item(tokens: &[TokenTree]) -> Option<(TokenTree, String)> {
    let mut constant = None;
    let mut modifier = None;
    for token in tokens {
        if matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace) {
            // `extern "C" { … }`
            return modifier;
        }
        let TokenTree::Ident(ident) = token else { continue };
        let name = ident.to_string();
        match name.as_str() {
            "extern" => modifier = Some((token.clone(), name)),
            "pub" | "async" | "unsafe" | "default" | "safe" | "auto" => {}
            "const" => constant = Some((token.clone(), name)),
            "fn" => return None,
            // `const LIMIT: …`, where the word after the keyword is a name.
            _ => return constant.or_else(|| Some((token.clone(), name))),
        }
    }
    // Nothing that names an item: the parser says what it misses.
    None
}

/// Takes `#![…]` off the beginning of a block.
fn split_inner_attributes(block: &Group) -> (TokenStream, Group) {
    let mut attributes = TokenStream::new();
    let tokens: Vec<TokenTree> = block.stream().into_iter().collect();
    let mut rest = tokens.as_slice();
    while let [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(group), after @ ..] = rest {
        if hash.as_char() != '#' || bang.as_char() != '!' || group.delimiter() != Delimiter::Bracket {
            break;
        }
        attributes.extend([hash.clone().into(), bang.clone().into(), TokenTree::from(group.clone())]);
        rest = after;
    }
    if attributes.is_empty() {
        return (attributes, block.clone());
    }
    let mut without = Group::new(Delimiter::Brace, rest.iter().cloned().collect());
    without.set_span(block.span());
    (attributes, without)
}
