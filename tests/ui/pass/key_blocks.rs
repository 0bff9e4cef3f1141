//! Any expression over the arguments may be the key: it is a value as every other.

#![deny(warnings)]

use std::collections::BTreeMap;

use crate::props::*;

#[derive(Clone, Copy, Serialize)]
pub enum Kind {
    Card,
    #[serde(rename = "direct-debit")]
    Debit,
}

#[derive(Serialize)]
pub struct Payment {
    pub kind: Kind,
    pub rate: f64,
    pub notes: BTreeMap<String, String>,
    pub lines: Vec<u32>,
    pub reference: Option<Option<u32>>,
}

impl Payment {
    pub fn this(&self) -> &Self {
        self
    }
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

#[idempotent(key = match payment.kind { Kind::Card => payment.rate.to_bits(), Kind::Debit => 0 })]
pub async fn matched(payment: Payment) -> Result<u64, Failure> {
    drop(payment);
    Ok(1)
}

#[idempotent(key = if let Some(first) = payment.lines.first() { *first } else { 0 })]
pub async fn chosen(payment: &Payment) -> Result<u64, Failure> {
    let _ = payment;
    Ok(1)
}

#[idempotent(key = { let id = id + 1; [id, 2] })]
pub async fn computed(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = (payment.this().rate.to_bits(), &payment.notes, payment.lines.first()))]
pub async fn several(payment: Payment) -> Result<u64, Failure> {
    drop(payment);
    Ok(1)
}

#[idempotent(key = "{{}}-{payment.this().this().kind()}:{payment.reference}/{payment.rate}")]
pub async fn template(payment: Payment) -> Result<u64, Failure> {
    drop(payment);
    Ok(1)
}
