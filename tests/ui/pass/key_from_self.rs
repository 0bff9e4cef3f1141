//! The receiver as part of the key

#![deny(warnings)]

use crate::props::*;

pub struct Client {
    pub tenant: Tenant,
}

impl Client {
    #[idempotent(key = "self.tenant.id, order.id", name = "quoted")]
    pub async fn quoted(&self, order: Order) -> Result<Receipt, Failure> {
        Ok(Receipt { id: order.id })
    }

    #[idempotent(key = (self.tenant.id, order.id), name = "unquoted")]
    pub async fn unquoted(&self, order: Order) -> Result<Receipt, Failure> {
        Ok(Receipt { id: order.id })
    }
}
