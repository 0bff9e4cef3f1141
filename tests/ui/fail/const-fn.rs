//! <https://github>.com/tokio-rs/tracing/pull/2418

use ui_tests::*;

#[idempotent(key = "order")]
const fn charge(order: u32) -> Result<u32, Failure> {
    Ok(order)
}

fn main() {}
