//! `ref` and `ref mut` in patterns

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn by_reference((ref id, ref mut count): (String, u32)) -> Result<u32, Failure> {
    *count += u32::from(id.is_empty());
    Ok(*count)
}
