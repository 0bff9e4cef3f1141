//! <https://github>.com/jaemk/cached/issues/48, <https://github>.com/dtolnay/async-trait/issues/28

#![deny(warnings)]

use crate::props::*;

#[derive(Serialize)]
pub struct View<'a> {
    pub id: &'a str,
}

#[idempotent(key = "view.id")]
pub async fn longest<'a, 'b: 'a>(view: View<'a>, other: &'b str) -> Result<usize, Failure> {
    let both: [&'a str; 2] = [view.id, other];
    Ok(both.iter().map(|text| text.len()).max().unwrap_or_default())
}
