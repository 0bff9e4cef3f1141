//! Option values given through macros. <https://github>.com/clap-rs/clap/issues/6412

#![deny(warnings)]

use crate::props::*;

macro_rules! operation {
    ($name:ident, $ttl:literal, $key:expr, $wait:expr, $skip:ident, $version:literal) => {
        #[idempotent(key = $key, ttl = $ttl, wait = $wait, skip($skip), version = $version)]
        pub async fn $name(order: Order, $skip: &Gateway) -> Result<u64, Failure> {
            let _ = $skip;
            Ok(order.amount)
        }
    };
}

operation!(quoted, "24h", "order.id", "5s", gateway, 2);

macro_rules! with_argument {
    ($name:ident, $order:ident, $key:expr) => {
        #[idempotent(key = $key)]
        pub async fn $name($order: Order) -> Result<u64, Failure> {
            Ok($order.amount)
        }
    };
}

with_argument!(unquoted, order, order.id);
