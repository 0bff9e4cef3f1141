//! Bodies that never end. <https://github>.com/tokio-rs/tokio/issues/4175

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn forever(id: u32) -> Result<u32, Failure> {
    loop {
        std::future::pending::<()>().await;
        let _ = id;
    }
}

#[allow(clippy::unimplemented)]
#[idempotent(key = "id", skip(later))]
pub async fn later(id: u32, later: Gateway) -> Result<u32, Failure> {
    let _ = (id, later);
    unimplemented!("later")
}
