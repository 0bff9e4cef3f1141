//! Reconcile await.

use ui_tests::*;

#[idempotent(key = "id", reconcile = find(id).await)]
async fn charge(id: u64) -> Result<u64, Failure> {
    Ok(id)
}

async fn find(id: u64) -> Result<idempotent_runtime::Reconciled<u64>, Failure> {
    Ok(idempotent_runtime::Reconciled::Done(id))
}

fn main() {}
