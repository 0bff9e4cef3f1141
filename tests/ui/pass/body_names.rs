//! The body may use every name that ours might have

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn names(id: u32) -> Result<u32, Failure> {
    let (key, store, fingerprint, result, outcome) = (1, 2, 3, 4, 5);
    let (call, site, begun, running, answer, policy) = (1, 2, 3, 4, 5, 6);
    let sum = key + store + fingerprint + result + outcome;
    Ok(id + sum + call + site + begun + running + answer + policy)
}
