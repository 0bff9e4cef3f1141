//! Patterns under `#[async_trait]`: they are bound inside the boxed body. <https://github>.com/dtolnay/async-trait/issues/45

#![deny(warnings)]

use crate::props::*;

use async_trait::async_trait;

#[async_trait]
pub trait Payments {
    async fn charge(&self, pool: State<Pool>, order: Json<Order>, pair: (u32, u32)) -> Result<u64, Failure>;
}

#[async_trait]
impl Payments for Pool {
    #[idempotent(key = "order.id, left", name = "charge", skip(pool))]
    async fn charge(
        &self,
        State(pool): State<Pool>,
        Json(order): Json<Order>,
        (left, mut right): (u32, u32),
    ) -> Result<u64, Failure> {
        right += left;
        let _ = (&pool, right);
        Ok(order.amount)
    }
}
