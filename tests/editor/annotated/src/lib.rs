//! Annotated functions as they are while somebody types them.

use idempotent_runtime::{Error, Idempotency, idempotent};

#[derive(serde::Serialize)]
pub struct Order {
    pub reference: u32, // the field
}

/// Charges an order.
#[idempotent(key = order.reference)] // a key
pub async fn charge(order: Order) -> Result<u32, Error> { // signature
    Ok(order.reference) // whole
}

#[idempotent(key = "order.reference")]
pub async fn half_a_body(order: Order) -> Result<u32, Error> {
    let reference: u32 = order. // half a body
    Ok(reference)
}

#[idempotent(key = order.r)] // half a key
pub async fn half_a_key(order: Order) -> Result<u32, Error> {
    Ok(order.reference)
}

pub struct Service {
    pub idempotency: Idempotency,
}

impl Service {
    #[idempotent(key = order.reference, name = "half", store = self.i)] // half a store
    pub async fn half_a_store(&self, order: Order) -> Result<u32, Error> {
        Ok(order.reference)
    }
}

#[idempotent(key = "ordr.reference", tttl = "1h")]
pub async fn mistaken(order: Order) -> Result<u32, Error> {
    Ok(order. // beside a mistake
    )
}

#[idempotent(key = "order.reference", ttl = )]
pub async fn half_an_attribute(order: Order) -> Result<u32, Error> {
    Ok(order. // half an attribute
    )
}

pub async fn calls(order: Order) -> Result<u32, Error> {
    charge(order).await // a call
}
