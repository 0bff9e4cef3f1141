//! What only the Redis store does: servers that die, stop, fail over and are set up badly. What every store does is the
//! conformance suite's.

mod support;

mod conforming;
mod counting;
mod doctor;
mod failing_over;
mod failures;
mod processes;
mod proxy;
mod records;
mod waiting;
