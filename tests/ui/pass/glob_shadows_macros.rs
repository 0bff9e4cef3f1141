//! A glob import that shadows macros of the standard library. <https://github>.com/tokio-rs/tracing/issues/3306

#![deny(warnings)]

use crate::props::*;

#[allow(unused_macros, unused_imports)]
mod shadows {
    macro_rules! concat {
        () => {};
    }
    macro_rules! module_path {
        () => {};
    }
    pub(super) use {concat, module_path};
}

#[allow(unused_imports)]
use shadows::*;

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
