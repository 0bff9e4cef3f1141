//! Every mistake is reported at once.

use ui_tests::*;

#[idempotent(key = "ordr.id", ttl = "24 hours", skip(pol, order, order), wait = 5, on_crash = "retri", banana)]
async fn charge(_: u32, order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
