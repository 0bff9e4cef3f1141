//! An argument that the body moves twice is called by its name, as in the plain function.

use ui_tests::*;

#[idempotent(key = "order.id")]
async fn charge(order: Order) -> Result<u64, Failure> {
    drop(order);
    Ok(order.amount)
}

struct Service(Order);

impl Service {
    #[idempotent(key = "id", name = "close")]
    async fn close(self, id: u32) -> Result<u32, Failure> {
        drop(self.0);
        drop(self.0);
        Ok(id)
    }
}

fn main() {}
