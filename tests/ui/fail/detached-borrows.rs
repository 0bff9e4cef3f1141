//! A task of its own cannot borrow from its caller.

use ui_tests::*;

struct Till;

impl Till {
    #[idempotent(key = "order.id", name = "charge", detached)]
    async fn charge(&self, order: &Order, names: Vec<&str>, label: &'static str) -> Result<u64, Failure> {
        let _ = (names, label);
        Ok(order.amount)
    }
}

fn main() {}
