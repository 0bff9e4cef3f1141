//! `self: Arc<Self>` and the like. <https://github>.com/dtolnay/async-trait/issues/11 and 210

#![deny(warnings)]

use crate::props::*;

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

pub struct Till(pub u64);

impl Till {
    #[idempotent(key = "order.id", name = "arc")]
    pub async fn arc(self: Arc<Self>, order: Order) -> Result<u64, Failure> {
        Ok(self.0 + order.amount)
    }

    #[idempotent(key = "order.id", name = "boxed")]
    pub async fn boxed(self: Box<Self>, order: Order) -> Result<u64, Failure> {
        Ok(self.0 + order.amount)
    }

    #[idempotent(key = "order.id", name = "rc")]
    pub async fn rc(self: Rc<Self>, order: Order) -> Result<u64, Failure> {
        Ok(self.0 + order.amount)
    }

    #[idempotent(key = "order.id", name = "pinned")]
    pub async fn pinned(self: Pin<&mut Self>, order: Order) -> Result<u64, Failure> {
        self.get_mut().0 += order.amount;
        Ok(order.amount)
    }
}
