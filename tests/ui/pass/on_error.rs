//! The words, a function, a closure

#![deny(warnings)]

use crate::props::*;

use idempotent_runtime::{OnError, Unstored};

#[idempotent(key = "id", on_error = "retry", name = "retry")]
pub async fn retry(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = "id", on_error = "replay", name = "replay")]
pub async fn replay(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = "id", on_error = "refuse", name = "refuse")]
pub async fn refuse(id: u32) -> Result<u32, Opaque> {
    Ok(id)
}

fn decide(error: &Failure) -> OnError {
    if error.0.is_empty() { OnError::Retry } else { OnError::Replay }
}

#[idempotent(key = "id", on_error = decide, name = "function")]
pub async fn function(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = "id", on_error = |error| if error.0 { Unstored::Retry } else { Unstored::Refuse }, name = "closure")]
pub async fn closure(id: u32) -> Result<u32, Opaque> {
    Ok(id)
}

/// Neither `Serialize` nor `DeserializeOwned`.
#[derive(Debug)]
pub struct Opaque(bool);

impl From<idempotent_runtime::Error> for Opaque {
    fn from(_: idempotent_runtime::Error) -> Self {
        Self(true)
    }
}
