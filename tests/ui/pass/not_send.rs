//! The wrapper asks for no `Send`. <https://github>.com/modelcontextprotocol/rust-sdk/issues/495 and 801

#![deny(warnings)]

use crate::props::*;

use std::rc::Rc;

#[idempotent(key = "id", skip(local))]
pub async fn local(id: u32, local: Rc<Pool>) -> Result<usize, Failure> {
    let kept = Rc::clone(&local);
    std::future::ready(id).await;
    Ok(Rc::strong_count(&kept))
}
