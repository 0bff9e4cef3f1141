//! A framework that its users depend on instead of the runtime.

pub use idempotent_runtime;
