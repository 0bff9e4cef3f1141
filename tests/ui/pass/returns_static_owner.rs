//! A `Cow` owns what is read back.

#![deny(warnings)]

use std::borrow::Cow;

use crate::props::*;

#[idempotent(key = "id")]
pub async fn name(id: u32) -> Result<Cow<'static, str>, Failure> {
    Ok(if id == 0 { Cow::Borrowed("nobody") } else { Cow::Owned(id.to_string()) })
}
