//! Key self without receiver.

use ui_tests::*;

#[idempotent(key = "self.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(1)
}

fn main() {}
