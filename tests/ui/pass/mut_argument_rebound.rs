//! A `mut` argument set to a local borrow. <https://github>.com/tokio-rs/tracing/issues/2717

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "name")]
pub async fn shout(mut name: &str) -> Result<String, Failure> {
    let longer = format!("{name}!");
    name = &longer;
    Ok(name.to_owned())
}
