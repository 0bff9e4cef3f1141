//! Every unknown name, at its own place.

use ui_tests::*;

#[idempotent(key = "order.id", skip(pol, ordr.id, "gatway.x"))]
async fn charge(pool: u32, order: Order) -> Result<u64, Failure> {
    drop((pool, order));
    Ok(1)
}

fn main() {}
