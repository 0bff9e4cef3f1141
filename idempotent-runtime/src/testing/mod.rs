//! For tests of applications and of stores: a [conformance] suite, a manual [clock](ManualClock), a store with
//! [faults](Faults).
//!
//! Nothing here is for production: helpers panic when a test has gone wrong.

mod clock;
pub mod conformance;
mod faults;

pub use crate::chance::seeded::seed_this_thread;
pub use clock::ManualClock;
pub use faults::{Call, Fault, Faults, Operation};
