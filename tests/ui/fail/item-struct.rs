//! Only functions are annotated.

use ui_tests::*;

#[idempotent(key = "id")]
pub struct Order2 {
    pub id: u32,
}

fn main() {}
