//! The handlers. None of them knows anything of keys, but for the one it passes on.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use idempotent_runtime::Attempt;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::App;
use crate::ledger::Entry;

#[derive(Debug, Deserialize)]
pub(crate) struct Payment {
    order_id: String,
    /// In the smallest unit of the currency.
    amount: u32,
    currency: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Refund {
    payment_id: String,
    amount: u32,
}

#[derive(Debug, Serialize)]
struct Receipt {
    payment_id: String,
    amount: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    status: &'static str,
}

/// Charges an order. More than a million is declined, which is an answer that a retry gets as well.
pub(crate) async fn pay(State(app): State<App>, attempt: Attempt, Json(payment): Json<Payment>) -> Response {
    if payment.amount > 1_000_000 {
        let declined = Json(serde_json::json!({ "status": "declined", "order_id": payment.order_id }));
        return (StatusCode::PAYMENT_REQUIRED, declined).into_response();
    }
    // What a real gateway would be given as its own key: the same for every attempt.
    let payment_id = attempt.downstream_key("gateway");
    let entry = Entry { id: payment_id.clone(), order: payment.order_id, amount: payment.amount.into() };
    let currency = Some(payment.currency);
    enter(&app, entry, Receipt { payment_id, amount: payment.amount, currency, status: "charged" }).await
}

/// Gives back a part of a payment.
pub(crate) async fn refund(State(app): State<App>, Json(refund): Json<Refund>) -> Response {
    let payment_id = refund.payment_id;
    let entry =
        Entry { id: payment_id.clone(), order: payment_id.clone(), amount: -i64::from(refund.amount) };
    enter(&app, entry, Receipt { payment_id, amount: refund.amount, currency: None, status: "refunded" })
        .await
}

/// The gateway: it takes a moment, and writes down whatever it is told.
async fn enter(app: &App, entry: Entry, receipt: Receipt) -> Response {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let ledger = app.ledger.clone();
    match spawn_blocking(move || ledger.enter(&entry)).await {
        Ok(Ok(())) => {
            let location = [(header::LOCATION, format!("/payments/{}", receipt.payment_id))];
            (StatusCode::CREATED, location, Json(receipt)).into_response()
        }
        // It may have been written all the same, so nobody may try again: this answer is stored.
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(crate) async fn balance(State(app): State<App>) -> Response {
    match spawn_blocking(move || app.ledger.balance()).await {
        Ok(Ok(balance)) => Json(balance).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
