//! An annotated function inside a function, a block and a module

#![deny(warnings)]

use crate::props::*;

pub async fn outer(order: Order) -> Result<u64, Failure> {
    #[idempotent(key = "order.id", name = "inner")]
    async fn inner(order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
    let in_block = {
        #[idempotent(key = "order.id", name = "in_block")]
        async fn inner(order: Order) -> Result<u64, Failure> {
            Ok(order.amount)
        }
        inner(order.clone()).await?
    };
    Ok(inner(order).await? + in_block)
}

#[idempotent(key = "order.id", name = "around")]
pub async fn around(order: Order) -> Result<u64, Failure> {
    #[idempotent(key = "order.id", name = "within")]
    async fn within(order: Order) -> Result<u64, Failure> {
        Ok(order.amount)
    }
    within(order).await
}
