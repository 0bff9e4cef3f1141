//! The shapes of `tests/ui/pass` again, in edition 2021.

#![allow(missing_docs, clippy::missing_errors_doc, clippy::unused_async, reason = "props and test programs")]

#[path = "../../../ui/pass/mod.rs"]
pub mod pass;
#[path = "../../../ui/src/props.rs"]
pub mod props;
