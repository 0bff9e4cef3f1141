//! Re-exported by a facade. <https://github>.com/fast/fastrace/issues/69

#![deny(warnings)]

use crate::props::*;

pub mod facade {
    pub mod inner {
        pub use idempotent_runtime;
    }
}

#[facade::inner::idempotent_runtime::idempotent(
    key = "order.id",
    crate = "crate::pass::reexported::facade::inner::idempotent_runtime"
)]
pub async fn quoted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}

#[idempotent(key = "order.id", crate = facade::inner::idempotent_runtime, on_crash = "retry")]
pub async fn unquoted(order: Order) -> Result<u64, Failure> {
    Ok(order.amount)
}
