//! The runtime is no dependency here: a facade hands it on.

use world_facade::idempotent_runtime::{Error, idempotent};

/// # Errors
/// Those of the library.
#[idempotent(key = "id", crate = "world_facade::idempotent_runtime", on_crash = "retry")]
pub async fn quoted(id: u32) -> Result<String, Error> {
    Ok(id.to_string())
}

/// # Errors
/// Those of the library.
#[idempotent(key = "id", crate = ::world_facade::idempotent_runtime, version = 2)]
pub async fn unquoted(id: u32) -> Result<String, Error> {
    Ok(id.to_string())
}
