//! What is emitted when something is wrong: the item as it is, so that nothing that uses it breaks too.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::quote_spanned;

use crate::errors::Errors;

/// Input:
/// ```text
/// #[idempotent(key = "ordr.id")] async fn charge(order: Order) -> Result<Receipt, Error> { … }
/// ```
/// Output:
/// ```text
/// #[allow(unused_variables)]
/// async fn charge(order: Order) -> Result<Receipt, Error> { … }
/// compile_error!("no argument named `ordr` …");
/// ```
/// The item comes before the errors, since editors resolve a token at the first place where they find it. An argument that
/// only the key would use is not reported beside the mistake that hides its use.
pub(crate) fn expand(item: TokenStream, is_function: bool, errors: Errors) -> TokenStream {
    let mut output = TokenStream::new();
    if is_function {
        output.extend(quote_spanned!(Span::mixed_site()=> #[allow(unused_variables)]));
    }
    output.extend(without_our_attribute(item));
    output.extend(errors.into_tokens());
    output
}

/// A second `#[idempotent]` on the same item would expand next, and repeat every message.
fn without_our_attribute(item: TokenStream) -> TokenStream {
    let mut output = Vec::new();
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        if hash && tokens.peek().is_some_and(is_our_attribute) {
            tokens.next();
        } else {
            output.push(token);
        }
    }
    output.into_iter().collect()
}

/// `[idempotent …]` or `[idempotent_runtime::idempotent …]`
fn is_our_attribute(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let path = group.stream().into_iter().take_while(|token| {
        matches!(token, TokenTree::Ident(_))
            || matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
    });
    group.delimiter() == Delimiter::Bracket
        && path.last().is_some_and(|token| matches!(token, TokenTree::Ident(ident) if ident == "idempotent"))
}
