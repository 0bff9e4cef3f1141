//! Tuples, structs, references, slices and `@`. <https://github>.com/dtolnay/async-trait/pull/234

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id, first, sku.0, bytes")]
pub async fn patterns(
    (first, mut second): (u32, u32),
    Order { id, tenant: Tenant { id: tenant }, .. }: Order,
    &price: &u64,
    [low, .., high]: [u8; 4],
    sku @ (_, _): (u32, u32),
    bytes: Vec<u8>,
) -> Result<u64, Failure> {
    second += first + tenant + u32::from(low) + u32::from(high) + sku.0 + sku.1;
    Ok(price + u64::from(second) + u64::from(id.is_empty()) + u64::from(bytes.is_empty()))
}

#[idempotent(key = "id", skip(id))]
pub async fn inside(whole @ Tenant { id, .. }: Tenant) -> Result<u32, Failure> {
    Ok(whole.id + id)
}
