//! The return type is judged as everywhere.

use ui_tests::*;

struct Opaque;

#[idempotent(key = "id", transaction = tx)]
async fn charge(tx: &mut String, id: u64) -> Result<Pool, Opaque> {
    let _ = (tx, id);
    Ok(Pool)
}

fn main() {}
