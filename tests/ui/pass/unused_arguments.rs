//! Arguments that the body does not use

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "_id", skip(_gateway))]
pub async fn nothing(_id: u32, _gateway: Gateway, _amount: u64) -> Result<(), Failure> {
    Ok(())
}
