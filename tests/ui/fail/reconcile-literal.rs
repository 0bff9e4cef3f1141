//! Reconcile literal.

use ui_tests::*;

#[idempotent(key = "id", reconcile = "find")]
async fn charge(id: u64) -> Result<u64, Failure> {
    Ok(id)
}

fn main() {}
