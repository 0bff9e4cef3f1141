//! Coercions in the tail. <https://github>.com/tokio-rs/tracing/issues/1053

#![deny(warnings)]

use crate::props::*;

use std::error::Error;

#[idempotent(key = "text")]
pub async fn parse(text: String) -> Result<u64, Box<dyn Error + Send + Sync>> {
    if text.is_empty() {
        return Err("empty".into());
    }
    match text.parse::<u64>() {
        Ok(number) => Ok(number),
        Err(error) => Err(Box::new(error)),
    }
}
