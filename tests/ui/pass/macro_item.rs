//! The attribute on an `$item` fragment

#![deny(warnings)]

use crate::props::*;

macro_rules! protected {
    ($item:item) => {
        #[idempotent(key = "order.id")]
        $item
    };
}

protected! {
    pub async fn charge(order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
}
