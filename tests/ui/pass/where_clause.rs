//! Bounds that stand in `where` only. <https://github>.com/jaemk/cached/issues/217

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "input")]
pub async fn echo<T>(input: T) -> Result<(), Failure>
where
    T: Serialize,
{
    drop(input);
    Ok(())
}
