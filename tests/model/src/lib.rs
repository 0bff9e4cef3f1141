//! The protocol as a state machine of which [`stateright`] looks at every history within bounds.
//!
//! One key; a few callers; requests that are late, lost, repeated and out of order; callers that crash, are dropped or give
//! up at any step; leases that end at any moment, and so every error of every clock; an operator; expiry. [`Promise`] says
//! what must hold. Each of the [`Protections`] can be left out, and then the checker has to find the harm: that shows that
//! it would notice.
//!
//! [`transactions`] is a machine of its own: calls in transactions of their callers'.
//!
//! `record` is the store's part and `protocol` the callers'. The tests compare the former with the store in memory, so that
//! model and code do not drift apart.

mod promises;
mod protocol;
mod record;
mod setting;
pub mod transactions;

pub use promises::{Broken, History, Promise};
pub use protocol::{Action, Phase as WorkerPhase, Protocol, Repair, State, Witness, Worker};
pub use record::{
    Answer, CallId, Mark, OPERATOR, Op, Phase, Record, Release, Request, Settled, apply, repair,
};
pub use setting::{Body, Bounds, OnCrash, OnError, Protections, Setting, TakeOver};
