//! The client middleware, against a server that does what a script says.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

mod answers;
mod contents;
mod keys;
mod limits;
mod script;
mod vendors;
