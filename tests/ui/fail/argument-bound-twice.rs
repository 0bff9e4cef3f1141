//! The compiler alone reports it.

use ui_tests::*;

#[idempotent(key = "id")]
async fn charge(id: u32, (id, _other): (u32, u32)) -> Result<u32, Failure> {
    Ok(id)
}

fn main() {}
