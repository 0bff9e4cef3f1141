//! `impl Trait` arguments. https://github.com/dtolnay/async-trait/issues/177 and 204

#![deny(warnings)]

use ui_tests::*;

use std::fmt::Display;

#[idempotent(key = "id.to_string()", skip(label))]
pub async fn show(id: impl Display + Serialize, label: impl Display) -> Result<String, Failure> {
    Ok(format!("{id}{label}"))
}

fn main() {
    drop(show(1, "label"));
}
