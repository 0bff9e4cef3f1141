//! Type parameters are kept. <https://github>.com/jaemk/cached/issues/211

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "input")]
pub async fn echo<T: Serialize>(input: T) -> Result<(), Failure> {
    drop(input);
    Ok(())
}

#[idempotent(key = "id", skip(hidden))]
pub async fn generic_result<T, U>(id: u32, input: T, hidden: U) -> Result<T, Failure>
where
    T: Serialize + serde::de::DeserializeOwned,
{
    drop(hidden);
    let _ = id;
    Ok(input)
}

#[idempotent(key = "id", on_error = "replay")]
pub async fn generic_error<E>(id: u32) -> Result<u32, E>
where
    E: From<idempotent_runtime::Error> + Serialize + serde::de::DeserializeOwned,
{
    Ok(id)
}
