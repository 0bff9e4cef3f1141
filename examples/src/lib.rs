//! What the programs under `examples/` share.

pub mod killing;
