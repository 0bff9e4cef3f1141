//! Reconcile wrong type.

use ui_tests::*;

#[idempotent(key = "id", reconcile = find(id))]
async fn charge(id: u64) -> Result<u64, Failure> {
    Ok(id)
}

async fn find(id: u64) -> Result<Option<u64>, Failure> {
    Ok(Some(id))
}

fn main() {}
