//! `anyhow::Result<T>` and project aliases. <https://github>.com/jaemk/cached/issues/111 and 124

#![deny(warnings)]

use crate::props::*;

pub mod anyhow {
    pub type Result<T, E = super::Failure> = core::result::Result<T, E>;
}

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> anyhow::Result<Receipt> {
    Ok(Receipt { id: order.id })
}
