#![doc = include_str!("../README.md")]

#[cfg(feature = "client")]
pub mod client;
pub mod fingerprint;
#[cfg(feature = "http")]
pub mod http;
pub mod key;
pub mod store;
pub mod stores;
#[cfg(feature = "testing")]
pub mod testing;

mod asking;
mod attempt;
mod background;
mod builder;
mod call;
mod chance;
mod codec;
mod context;
mod detached;
mod diagnostics;
mod doctor;
mod downstream;
mod error;
mod events;
mod heartbeat;
mod idempotency;
mod immediate;
mod meters;
mod on_error;
mod operation;
mod outcome;
mod policy;
mod prepared;
mod purge;
mod reconcile;
mod repair;
mod replay;
mod reservation;
mod run;
mod sealing;
#[expect(missing_docs, clippy::missing_errors_doc, reason = "called by generated code only")]
mod shim;
mod steps;
pub mod transaction;
mod waiting;

pub use attempt::Attempt;
pub use builder::{ConfigError, IdempotencyBuilder};
pub use codec::Codec;
pub use context::{attempt, with_outcome};
pub use doctor::{Finding, Severity};
pub use error::Error;
pub use idempotency::{Idempotency, ReplayInfo};
#[cfg(feature = "macros")]
#[doc = include_str!("docs/attribute.md")]
pub use idempotent_macros::idempotent;
#[cfg(feature = "metrics")]
pub use meters::describe_metrics;
pub use on_error::{Decision, ErrorPolicy};
pub use operation::{Operation, OperationCall};
pub use outcome::{Outcome, Unrecorded};
pub use policy::{OnCrash, OnError, OnLost, OnMissingKey, Unstored};
pub use purge::Purging;
pub use reconcile::Reconciled;
pub use steps::step;

#[doc(hidden)]
pub mod __v0_1_0 {
    pub use crate::diagnostics::*;
    pub use crate::shim::*;
}
