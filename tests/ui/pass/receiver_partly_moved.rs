//! A receiver whose fields the body moves one by one

#![deny(warnings)]

use crate::props::*;

pub struct Till {
    pub names: Vec<String>,
    pub total: u64,
}

impl Till {
    #[idempotent(key = "order.id", name = "close")]
    pub async fn close(self, order: Order) -> Result<Vec<String>, Failure> {
        let mut names = self.names;
        names.push(order.id);
        Ok(names)
    }
}
