//! Types that a macro makes, projections, and aliases with defaults.

#![deny(warnings)]

use crate::props::*;

macro_rules! outcome {
    ($ty:ty) => { Result<$ty, Failure> };
}

macro_rules! number {
    () => {
        u64
    };
}

pub trait Fails {
    type Error;
}

pub struct Gateway;

impl Fails for Gateway {
    type Error = Failure;
}

pub type Reply<T = u64, E = Failure> = Result<T, E>;

#[idempotent(key = "id")]
pub async fn made(id: number!()) -> outcome!(number!()) {
    Ok(id)
}

#[idempotent(key = "id")]
pub async fn projected(id: u8) -> Result<<Vec<u8> as IntoIterator>::Item, <Gateway as Fails>::Error> {
    Ok(id)
}

#[idempotent(key = "id")]
pub async fn defaulted(id: u64) -> Reply {
    Ok(id)
}

#[idempotent(key = "id")]
pub async fn half_defaulted(id: u64) -> Reply<[u64; 2]> {
    Ok([id; 2])
}
