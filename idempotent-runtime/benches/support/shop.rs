//! What the benchmarks call: an order of 200 bytes of JSON, answered by a receipt of 300.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark stops where something is not as expected"
)]

use idempotent_runtime::{Error, Idempotency, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) customer: u64,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) sku: String,
    pub(crate) quantity: u32,
    pub(crate) price: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) order: String,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) authorised: bool,
    pub(crate) processor: String,
    pub(crate) card: String,
    pub(crate) statement: String,
}

impl Order {
    /// The order with this number.
    pub(crate) fn new(number: u64) -> Self {
        let line = |sku: &str, price| Line { sku: sku.into(), quantity: 2, price };
        let order = Self {
            id: format!("018f3c5e-7b1a-7c3d-9e42-{number:012x}"),
            customer: 81_223_004,
            amount: 17_980,
            currency: "EUR".into(),
            lines: vec![line("bag-0417-black", 4_995), line("mug-1", 3_995)],
        };
        assert_eq!(serde_json::to_vec(&order).unwrap().len(), 200);
        order
    }
}

impl Receipt {
    /// What `order` is answered with.
    pub(crate) fn new(order: &Order) -> Self {
        let receipt = Self {
            id: "rcpt_01HXYZ5K8QJ3M7N2P4R6S8T0V1".into(),
            order: order.id.clone(),
            amount: order.amount,
            currency: order.currency.clone(),
            authorised: true,
            processor: "first-acquirer/eu-central-1/terminal-0042".into(),
            card: "visa **** **** **** 4242, expires 11/29".into(),
            statement: "EXAMPLE SHOP 018F3C5E BERLIN, DE, THANK YOU".into(),
        };
        assert_eq!(serde_json::to_vec(&receipt).unwrap().len(), 300);
        receipt
    }
}

/// The annotated function. Its body hands over a receipt that is made already, so that what is measured is what comes
/// with the annotation; a replay needs none.
#[idempotent(name = "shop::charge", key = "order.id", store = idempotency, skip(idempotency, receipt))]
pub(crate) async fn charge(
    idempotency: &Idempotency,
    order: &Order,
    receipt: Option<Receipt>,
) -> Result<Receipt, Error> {
    Ok(receipt.expect("the first call has a receipt"))
}
