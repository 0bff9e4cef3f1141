//! Skip twice.

use ui_tests::*;

#[idempotent(key = "order.id", skip(pool, pool, order.tenant, order.tenant.id))]
async fn charge(pool: Pool, order: Order) -> Result<u64, Failure> {
    drop((pool, order));
    Ok(1)
}

fn main() {}
