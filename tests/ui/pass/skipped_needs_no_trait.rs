//! Nothing is asked of a skipped argument; `Serialize` alone of the others. <https://github>.com/near/near-sdk-rs/pull/213

#![deny(warnings)]

use crate::props::*;

#[derive(Serialize)]
pub struct Input {
    pub id: u32,
}

pub struct Opaque(pub *const u8);

#[idempotent(key = "input.id", skip(opaque))]
pub async fn charge(input: Input, opaque: Opaque) -> Result<u32, Failure> {
    Ok(input.id + u32::from(opaque.0.is_null()))
}
