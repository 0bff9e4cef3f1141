//! The key borrows what the body moves; nothing is cloned

#![deny(warnings)]

use crate::props::*;

#[derive(Serialize)]
pub struct Unclonable {
    pub id: String,
}

#[idempotent(key = "input.id")]
pub async fn take(input: Unclonable) -> Result<String, Failure> {
    let taken = input;
    Ok(taken.id)
}
