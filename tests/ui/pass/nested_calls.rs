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

chain!(b c d e f g h i j k l m n o);

#[test]
fn fourteen_may_be_spawned() {
    fn is_send<T: Send>(_: T) {}
    is_send(b(1));
}

/// One more where nobody has to see that they may move to another thread, as some lints do.
#[cfg(not(clippy))]
#[test]
fn fifteen_compile() {
    #[idempotent(key = "id")]
    async fn a(id: u32) -> Result<u32, Failure> {
        b(id).await
    }
    drop(a(1));
}
