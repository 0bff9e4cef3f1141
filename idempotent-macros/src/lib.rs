//! The `#[idempotent]` attribute of the crate `idempotent-runtime`; do not depend on this crate directly.
