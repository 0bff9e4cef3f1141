//! <https://github>.com/dtolnay/async-trait/issues/57

#![deny(warnings)]

use crate::props::*;

pub struct Fixed<const N: usize>;

impl<const N: usize> Serialize for Fixed<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&N)
    }
}

#[idempotent(key = "block")]
pub async fn length<const N: usize>(block: Fixed<N>) -> Result<usize, Failure> {
    drop(block);
    Ok(N)
}
