//! `impl Trait` arguments. <https://github>.com/dtolnay/async-trait/issues/177 and 204

#![deny(warnings)]

use crate::props::*;

use std::fmt::Display;

#[idempotent(key = "id.to_string()", skip(label))]
pub async fn show(id: impl Display + Serialize, label: impl Display) -> Result<String, Failure> {
    Ok(format!("{id}{label}"))
}

#[test]
fn compiles() {
    drop(show(1, "label"));
}
