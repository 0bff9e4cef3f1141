//! Every mistake of one attribute, so that one compilation shows them all.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Collects mistakes. Parsers push into it and go on; only [`into_tokens`](Self::into_tokens) ends it.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Errors {
    all: Vec<syn::Error>,
}

impl Errors {
    /// A mistake at `tokens`, from the first to the last.
    pub(crate) fn at(&mut self, tokens: &impl ToTokens, message: impl std::fmt::Display) {
        self.all.push(syn::Error::new_spanned(tokens, message));
    }

    /// A mistake at `span`.
    pub(crate) fn at_span(&mut self, span: Span, message: impl std::fmt::Display) {
        self.all.push(syn::Error::new(span, message));
    }

    pub(crate) fn add(&mut self, error: syn::Error) {
        self.all.push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// One `compile_error!` for each.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.all.iter().map(syn::Error::to_compile_error).collect()
    }
}
