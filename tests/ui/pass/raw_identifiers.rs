//! <https://github>.com/elastio/bon/issues/175, <https://github>.com/dtolnay/proc-macro2/issues/245

#![deny(warnings)]

use crate::props::*;

#[derive(Serialize)]
pub struct Kind {
    pub r#type: u32,
}

#[idempotent(key = "r#match.r#type, r#in", skip(r#type))]
pub async fn r#async(r#type: Pool, r#match: Kind, r#in: u32) -> Result<u32, Failure> {
    drop(r#type);
    Ok(r#match.r#type + r#in)
}

#[idempotent(key = "match.type", skip(match.type))]
pub async fn without_the_mark(r#match: Kind) -> Result<u32, Failure> {
    Ok(r#match.r#type)
}
