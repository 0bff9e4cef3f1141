//! Whatever a body may end with

#![deny(warnings)]
#![allow(clippy::needless_return)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn ends_with_if(id: u32) -> Result<u32, Failure> {
    if id > 1 { Ok(id) } else { Err(Failure(String::new())) }
}

#[idempotent(key = "id")]
pub async fn ends_with_match(id: u32) -> Result<u32, Failure> {
    match id {
        0 => Err(Failure(String::new())),
        id => Ok(id),
    }
}

#[idempotent(key = "id")]
pub async fn ends_with_return(id: u32) -> Result<u32, Failure> {
    return Ok(id);
}

#[idempotent(key = "id")]
pub async fn ends_with_a_block(id: u32) -> Result<u32, Failure> {
    {
        let twice = id * 2;
        Ok(twice)
    }
}
