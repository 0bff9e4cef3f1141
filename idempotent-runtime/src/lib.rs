//! Run an async function at most once per key.

pub mod fingerprint;
pub mod key;
pub mod store;
pub mod stores;
#[cfg(feature = "testing")]
pub mod testing;

mod diagnostics;
mod error;
mod outcome;
mod policy;
#[expect(missing_docs, reason = "called by generated code only")]
mod shim;

pub use error::Error;
#[cfg(feature = "macros")]
#[doc = include_str!("docs/attribute.md")]
pub use idempotent_macros::idempotent;
pub use outcome::{Outcome, Unrecorded};
pub use policy::{OnCrash, OnError, OnMissingKey, Unstored};

#[doc(hidden)]
pub mod __v0_1_0 {
    pub use crate::diagnostics::*;
    pub use crate::shim::*;
}
