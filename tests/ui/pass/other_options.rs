//! `on_crash`, `on_missing_key`, `version`, `name`

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id", on_crash = "refuse", on_missing_key = "error", version = 1, name = "first")]
pub async fn first(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(
    key = "id",
    on_crash = "retry",
    on_missing_key = "run",
    version = 4_294_967_295,
    name = "second"
)]
pub async fn second(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = "id", on_crash = "retry_before_effects", version = 0x10, name = "third")]
pub async fn third(id: u32) -> Result<u32, Failure> {
    Ok(id)
}
