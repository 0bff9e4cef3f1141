//! References as arguments need no clone. <https://github>.com/jaemk/cached/issues/64 and 202

#![deny(warnings)]

use crate::props::*;

pub trait Backend {
    fn name(&self) -> String;
}

#[idempotent(key = "order.id", skip(backend))]
pub async fn charge(
    order: &Order,
    bytes: &[u8],
    note: &str,
    count: &mut u32,
    maybe: Option<&Tenant>,
    backend: &dyn Backend,
) -> Result<String, Failure> {
    *count += 1;
    Ok(format!("{}{}{note}{}{}", order.id, bytes.len(), maybe.is_some(), backend.name()))
}
