//! https://github.com/dtolnay/async-trait/issues/57

#![deny(warnings)]

use ui_tests::*;

pub struct Fixed<const N: usize>;

impl<const N: usize> Serialize for Fixed<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(N as u64)
    }
}

#[idempotent(key = "block")]
pub async fn length<const N: usize>(block: Fixed<N>) -> Result<usize, Failure> {
    drop(block);
    Ok(N)
}

fn main() {}
