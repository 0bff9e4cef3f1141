//! What an option's expression may not do: it is evaluated on every call, before anything is reserved.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::errors::Errors;

/// Refuses `.await`, `?` and `return` in the value of `option`.
///
/// They would leave the function, or wait, at a place that nobody reads as part of its body. Tokens are enough to tell: in
/// an expression `?` has no other meaning, and neither has `await` after a dot.
pub(crate) fn refuse(option: &str, tokens: TokenStream, errors: &mut Errors) {
    refuse_in(option, tokens, errors, true);
}

/// As [`refuse`], but what stands in braces is a block, perhaps an `async` one, where all of this is usual.
pub(crate) fn refuse_outside_blocks(option: &str, tokens: TokenStream, errors: &mut Errors) {
    refuse_in(option, tokens, errors, false);
}

fn refuse_in(option: &str, tokens: TokenStream, errors: &mut Errors, in_blocks: bool) {
    let mut after_dot = false;
    for token in tokens {
        let found = match &token {
            TokenTree::Group(group) => {
                if in_blocks || group.delimiter() != Delimiter::Brace {
                    refuse_in(option, group.stream(), errors, in_blocks);
                }
                None
            }
            TokenTree::Punct(punct) if punct.as_char() == '?' => Some("?"),
            TokenTree::Ident(ident) if after_dot && ident == "await" => Some(".await"),
            TokenTree::Ident(ident) if ident == "return" => Some("return"),
            _ => None,
        };
        if let Some(what) = found {
            let fix = if option == "reconcile" {
                "the future that it gives is awaited for you; write `async { .. }` to compute it"
            } else {
                "compute the value in the caller and pass it as an argument"
            };
            errors.at(&token, format!("`{what}` is not allowed in `{option}`; {fix}"));
        }
        after_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
    }
}
