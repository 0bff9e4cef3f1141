//! Fragments arrive in invisible groups. <https://github>.com/dtolnay/syn/issues/833, 852, 916 and 2081

#![deny(warnings)]

use crate::props::*;

macro_rules! operation {
    ($vis:vis fn $name:ident($arg:pat, $ty:ty) $body:block) => {
        #[idempotent(key = "id")]
        $vis async fn $name($arg: $ty) -> Result<u32, Failure> $body
    };
}

operation!(pub fn one(id, u32) { Ok(id) });
operation!(pub fn two((id, _), (u32, u32)) { Ok(id) });
operation!(pub fn three(Tenant { id }, Tenant) { Ok(id) });

macro_rules! hidden {
    ($vis:vis $name:ident) => {
        #[idempotent(key = "id")]
        $vis async fn $name(id: u32) -> Result<u32, Failure> {
            Ok(id)
        }
    };
}

hidden!(private);

pub async fn uses() -> Result<u32, Failure> {
    private(1).await
}
