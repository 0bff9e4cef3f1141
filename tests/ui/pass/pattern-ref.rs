//! `ref` and `ref mut` in patterns

#![deny(warnings)]

use ui_tests::*;

#[idempotent(key = "id")]
pub async fn by_reference((ref id, ref mut count): (String, u32)) -> Result<u32, Failure> {
    *count += id.len() as u32;
    Ok(*count)
}

fn main() {}
