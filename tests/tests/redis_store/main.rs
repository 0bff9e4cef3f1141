//! What only the Redis store does: servers that die, stop, fail over and are set up badly. What every store does is the
//! conformance suite's.

mod conforming;
mod support;
