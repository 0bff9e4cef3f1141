//! A function that calls itself, boxed

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "depth")]
pub async fn down(depth: u32) -> Result<u32, Failure> {
    if depth == 0 {
        return Ok(0);
    }
    Box::pin(down(depth - 1)).await
}
