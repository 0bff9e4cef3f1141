//! <https://github>.com/jaemk/cached/issues/114 and 230, <https://github>.com/tokio-rs/tracing/issues/3381

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "key", skip(store, skip))]
#[allow(clippy::too_many_arguments)]
pub async fn names(
    key: u32,
    ttl: u32,
    store: Pool,
    skip: Gateway,
    result: u32,
    debug: u32,
    name: u32,
    call: u32,
    output: u32,
) -> Result<u32, Failure> {
    drop((store, skip));
    Ok(key + ttl + result + debug + name + call + output)
}
