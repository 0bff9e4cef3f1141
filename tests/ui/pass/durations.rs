//! Every way to write a duration

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id", ttl = "1w 2d 3h 4m 5s 6ms", lease = "1m30s", wait = " 250 ms ")]
pub async fn charge(id: u32) -> Result<u32, Failure> {
    Ok(id)
}
