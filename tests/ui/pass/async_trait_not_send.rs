//! `#[async_trait(?Send)]`, generics and a default body

#![deny(warnings)]

use crate::props::*;

use async_trait::async_trait;
use std::rc::Rc;

#[async_trait(?Send)]
pub trait Payments<T: Serialize + 'static> {
    #[idempotent(key = "input", name = "echo", skip(_local))]
    async fn echo(&self, input: T, _local: Rc<u32>) -> Result<u32, Failure>
    where
        T: Clone,
    {
        let kept = Rc::new(input.clone());
        std::future::ready(()).await;
        drop(kept);
        Ok(1)
    }
}
