//! The key borrows what the body moves; nothing is cloned

#![deny(warnings)]

use ui_tests::*;

#[derive(Serialize)]
pub struct Unclonable {
    pub id: String,
}

#[idempotent(key = "input.id")]
pub async fn take(input: Unclonable) -> Result<String, Failure> {
    let taken = input;
    Ok(taken.id)
}

fn main() {}
