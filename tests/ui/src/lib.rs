//! What `#[idempotent]` accepts is in `pass/`, compiled as modules of this crate; what it refuses is in `fail/`.

#![allow(missing_docs, clippy::missing_errors_doc, clippy::unused_async, reason = "props and test programs")]

#[path = "../pass/mod.rs"]
pub mod pass;
pub mod props;

pub use props::*;
