//! Documentation stays, in every form

#![deny(warnings)]
#![allow(clippy::doc_markdown, clippy::doc_link_with_quotes)]
#![deny(missing_docs, clippy::missing_errors_doc, clippy::missing_docs_in_private_items)]

use crate::props::*;

/// Charges.
#[doc = "More."]
#[doc = include_str!("../Cargo.toml")]
#[idempotent(key = "order.id")]
/// # Errors
/// Those of the gateway.
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
