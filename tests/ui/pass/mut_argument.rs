//! `mut` on an argument is neither lost nor doubled. <https://github>.com/tokio-rs/tracing/pull/1167

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "amount")]
pub async fn double(mut amount: u64) -> Result<u64, Failure> {
    amount *= 2;
    Ok(amount)
}

#[idempotent(key = "id", skip(names))]
pub async fn push(id: u32, mut names: Vec<String>) -> Result<usize, Failure> {
    names.push(id.to_string());
    Ok(names.len())
}
