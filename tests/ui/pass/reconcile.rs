//! A call, an async block with `?`, a method of the receiver, beside `detached`

#![deny(warnings)]

use crate::props::*;

use idempotent_runtime::Reconciled;

impl Gateway {
    pub async fn find(&self, id: &str) -> Result<Reconciled<Receipt>, Failure> {
        Ok(Reconciled::Done(Receipt { id: id.to_owned() }))
    }
}

#[idempotent(key = "order.id", skip(gateway), reconcile = gateway.find(&order.id), name = "call")]
pub async fn call(gateway: &Gateway, order: Order) -> Result<Receipt, Failure> {
    gateway.charge(order.amount).await?;
    Ok(Receipt { id: order.id })
}

#[idempotent(key = "id", name = "block", reconcile = async {
    let number: u32 = id.parse()?;
    Ok(if number == 0 { Reconciled::NotDone } else { Reconciled::Unknown })
})]
pub async fn block(mut id: String) -> Result<String, Failure> {
    id.push('!');
    Ok(id)
}

#[derive(Debug)]
pub struct Service {
    gateway: Gateway,
}

impl Service {
    #[idempotent(key = "order.id", reconcile = self.gateway.find(&order.id), name = "method")]
    pub async fn method(&self, order: Order) -> Result<Receipt, Failure> {
        Ok(Receipt { id: order.id })
    }
}

#[idempotent(key = "_id", reconcile = std::future::ready(Ok(Reconciled::NotDone)), detached, name = "detached")]
pub async fn detached(_id: u32) -> Result<Receipt, Failure> {
    Ok(Receipt { id: String::new() })
}

#[async_trait::async_trait]
pub trait Charges {
    async fn charge(&self, order: Order) -> Result<Receipt, Failure>;
}

#[async_trait::async_trait]
impl Charges for Service {
    #[idempotent(key = "order.id", reconcile = self.gateway.find(&order.id), name = "boxed")]
    async fn charge(&self, order: Order) -> Result<Receipt, Failure> {
        Ok(Receipt { id: order.id })
    }
}
