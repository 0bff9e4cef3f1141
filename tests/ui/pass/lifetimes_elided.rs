//! <https://github>.com/dtolnay/async-trait/issues/31 and 110

#![deny(warnings)]

use crate::props::*;

use std::borrow::Cow;

#[idempotent(key = "name")]
pub async fn elided(name: Vec<Cow<'_, str>>, other: Cow<'_, str>) -> Result<usize, Failure> {
    Ok(name.len() + other.len())
}
