//! Quoted selectors find arguments that only the macro can name. <https://github>.com/rust-lang/rust/issues/92654

#![deny(warnings)]

use crate::props::*;

macro_rules! operation {
    ($name:ident, $key:literal) => {
        #[idempotent(key = $key)]
        pub async fn $name(order: Order) -> Result<u64, Failure> {
            Ok(order.amount)
        }
    };
}

operation!(charge, "order.id, order.tenant.id");
