//! `?` with several error types. <https://github>.com/rust-lang/rust/issues/63502

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "text")]
pub async fn parse(text: String) -> Result<u64, Failure> {
    let number: u64 = text.parse::<u64>()?;
    Gateway.charge(number).await?;
    if number == 0 {
        return Err(Failure("zero".into()));
    }
    Ok(number)
}

#[idempotent(key = "text", name = "unit")]
pub async fn unit(text: String) -> Result<(), Failure> {
    Gateway.charge(text.parse()?).await
}
