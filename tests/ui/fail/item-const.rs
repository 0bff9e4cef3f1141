//! A constant, also one of a function type.

use ui_tests::*;

#[idempotent(key = "order.id")]
const LIMIT: fn() -> u32 = limit;

fn limit() -> u32 {
    1
}

fn main() {}
