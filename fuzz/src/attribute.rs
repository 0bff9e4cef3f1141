//! What users write into the attribute.

use std::str::FromStr as _;

use proc_macro2::{Literal, TokenStream};

const FUNCTION: &str =
    "async fn charge(&self, order: Order, tenant: u8) -> Result<Receipt, ChargeError> { todo!() }";

/// Whatever is written, the attribute gives tokens that can be written down and read again.
fn expands(attribute: TokenStream) {
    let item = TokenStream::from_str(FUNCTION).expect("it is Rust");
    let text = macros::expanded(attribute, item).to_string();
    TokenStream::from_str(&text).expect("what it gives is Rust");
}

fn expands_text(attribute: &str) {
    if let Ok(attribute) = TokenStream::from_str(attribute) {
        expands(attribute);
    }
}

fn literal(data: &[u8]) -> Option<String> {
    std::str::from_utf8(data).ok().map(|text| Literal::string(text).to_string())
}

/// A whole list of options.
pub fn attribute(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        expands_text(text);
    }
}

/// The text of a duration.
pub fn ttl(data: &[u8]) {
    if let Some(text) = literal(data) {
        expands_text(&format!("key = \"order.id\", ttl = {text}"));
    }
}

/// A selector, a list of them or a template.
pub fn key_template(data: &[u8]) {
    if let Some(text) = literal(data) {
        expands_text(&format!("key = {text}"));
        expands_text(&format!("key = \"order.id\", fingerprint = {text}"));
    }
}

/// A path in `skip`.
pub fn skip_path(data: &[u8]) {
    if let Some(text) = literal(data) {
        expands_text(&format!("key = \"tenant\", skip({text})"));
    }
}
