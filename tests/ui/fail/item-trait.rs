//! A trait.

use ui_tests::*;

#[idempotent(key = "order.id")]
pub trait Payments {}

fn main() {}
