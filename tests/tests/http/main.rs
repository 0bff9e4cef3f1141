//! The `Idempotency-Key` layer, through real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

mod bodies;
mod concurrency;
mod costs;
mod disconnects;
mod encodings;
mod failures;
mod handlers;
mod methods;
mod policy;
mod principals;
mod processes;
mod replays;
mod reuse;
mod statuses;
mod support;
mod syntax;
mod versions;
