//! Programs that show the crate doing its job; see `examples/`.
