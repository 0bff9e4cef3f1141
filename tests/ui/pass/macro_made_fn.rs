//! The whole function comes from a macro. <https://github>.com/tokio-rs/tokio/issues/5243

#![deny(warnings)]

use crate::props::*;

macro_rules! operation {
    ($name:ident, $argument:ident: $ty:ty, $answer:ty) => {
        #[idempotent(key = "order.id", skip($argument))]
        pub async fn $name(order: Order, $argument: $ty) -> Result<$answer, Failure> {
            let _ = &$argument;
            Ok(order.amount)
        }
    };
}

operation!(charge, gateway: &Gateway, u64);
