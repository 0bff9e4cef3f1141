//! Annotated calls inside one another. <https://github>.com/tokio-rs/tracing/issues/616

#![deny(warnings)]

use crate::props::*;

macro_rules! chain {
    ($name:ident) => {
        #[idempotent(key = "id")]
        pub async fn $name(id: u32) -> Result<u32, Failure> {
            Ok(id)
        }
    };
    ($name:ident $next:ident $($rest:ident)*) => {
        #[idempotent(key = "id")]
        pub async fn $name(id: u32) -> Result<u32, Failure> {
            $next(id).await
        }
        chain!($next $($rest)*);
    };
}

chain!(a b c d e f g h i j k l m n o);

#[test]
fn fifteen_compile() {
    drop(a(1));
}

/// One less where the compiler has to follow them to see that they may move to another thread.
#[test]
fn fourteen_may_be_spawned() {
    fn is_send<T: Send>(_: T) {}
    is_send(b(1));
}
