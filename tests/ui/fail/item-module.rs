//! A module.

use ui_tests::*;

#[idempotent(key = "order.id")]
mod inside {}

fn main() {}
