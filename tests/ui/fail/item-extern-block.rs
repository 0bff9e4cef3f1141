//! A block of foreign functions.

use ui_tests::*;

#[idempotent(key = "order.id")]
unsafe extern "C" {
    fn charge(order: u64) -> u64;
}

fn main() {}
