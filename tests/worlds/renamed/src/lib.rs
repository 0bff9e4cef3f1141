//! The runtime has another name here, and serde is no dependency: neither has to be said.

use idem::{Error, idempotent};

/// # Errors
/// Those of the library.
#[idempotent(key = "id", on_error = "retry", on_crash = "retry", on_missing_key = "run")]
pub async fn charge(id: u32) -> Result<String, Error> {
    Ok(id.to_string())
}
