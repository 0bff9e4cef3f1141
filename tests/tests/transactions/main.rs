//! Calls in a transaction of the caller's, on a real database of each kind.

#![allow(clippy::duplicate_mod, reason = "the same tests, for each database")]

mod failure;
mod mysql;
mod postgres;
mod sqlite;
