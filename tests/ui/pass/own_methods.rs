//! Types with methods and traits of the names that ours use

#![deny(warnings)]

use crate::props::*;

pub trait Own {
    fn key(&self) {}
    fn argument(&self) {}
    fn fingerprint(&self) {}
    fn begin(&self) {}
    fn prepare(&self) {}
}

impl<T: ?Sized> Own for T {}

#[idempotent(key = "order.id")]
pub async fn charge(order: Order) -> Result<u64, Failure> {
    order.fingerprint();
    order.id.key();
    Ok(order.amount)
}
