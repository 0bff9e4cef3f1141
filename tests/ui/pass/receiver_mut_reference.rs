//! `&mut self` is borrowed by the key and used by the body. <https://github>.com/dtolnay/async-trait/issues/300

#![deny(warnings)]

use crate::props::*;

pub struct Till {
    pub tenant: Tenant,
    pub total: u64,
}

impl Till {
    #[idempotent(key = "self.tenant.id, order.id", name = "add")]
    pub async fn add(&mut self, order: Order) -> Result<u64, Failure> {
        self.total += order.amount;
        let total = &mut self.total;
        *total += 1;
        Ok(self.total)
    }
}
