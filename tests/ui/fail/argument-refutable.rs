//! The compiler blames the pattern. <https://github>.com/rust-lang/rust/issues/136719

use ui_tests::*;

#[idempotent(key = "id")]
async fn charge(Some(id): Option<u32>) -> Result<u32, Failure> {
    Ok(id)
}

fn main() {}
