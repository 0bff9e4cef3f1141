//! What the return type lacks is said once, also where it is asked for more than once.

use idempotent_runtime::Reconciled;
use ui_tests::*;

#[idempotent(key = "id", reconcile = find(id))]
async fn charge(id: u64) -> Result<Pool, Failure> {
    let _ = id;
    Ok(Pool)
}

async fn find(_: u64) -> Result<Reconciled<Pool>, Failure> {
    Ok(Reconciled::NotDone)
}

#[derive(Serialize)]
struct Opaque;

#[idempotent(key = "id", detached, on_error = |_| idempotent_runtime::Unstored::Retry)]
async fn refused(id: u64) -> Result<u64, Opaque> {
    Ok(id)
}

fn main() {}
