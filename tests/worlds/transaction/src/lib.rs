//! `transaction = tx` in every shape of a function. What it does is tested where there is a server.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::missing_errors_doc, reason = "test programs")]

use idempotent_runtime::{Error, OnError, idempotent};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, Postgres, Transaction};

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The key.
    pub id: String,
    /// Counted.
    pub amount: i64,
}

/// An error that can be stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

/// What the other functions call.
async fn post(connection: &mut PgConnection, order: &Order) -> Result<i64, Failure> {
    sqlx::query("INSERT INTO entries (id, amount) VALUES ($1, $2)")
        .bind(&order.id)
        .bind(order.amount)
        .execute(connection)
        .await?;
    Ok(order.amount)
}

/// A transaction, which the body uses twice.
#[idempotent(key = "order.id", transaction = tx)]
pub async fn charge(tx: &mut Transaction<'_, Postgres>, order: Order) -> Result<i64, Failure> {
    post(tx, &order).await?;
    post(tx, &order).await
}

/// A connection, with a lifetime of its own name, and not the first argument.
#[idempotent(key = order.id, transaction = connection, wait = "1s", ttl = "1h", version = 2)]
pub async fn charge_on<'c>(order: &'c Order, connection: &'c mut PgConnection) -> Result<i64, Failure> {
    post(connection, order).await
}

/// The name in quotes, the argument `mut` and raw, and rebound by the body.
#[idempotent(key = "order.id", transaction = "type", on_error = "replay")]
pub async fn charge_again(mut r#type: &mut PgConnection, mut order: Order) -> Result<i64, Failure> {
    order.amount += 1;
    let inner = &mut *r#type;
    post(inner, &order).await?;
    r#type = inner;
    post(r#type, &order).await
}

/// An early return, and a decision about each error.
#[idempotent(key = "*", transaction = tx, on_error = |error: &Failure| if error.0.is_empty() { OnError::Replay } else { OnError::Retry })]
pub async fn charge_or_not(tx: &mut PgConnection, order: Order) -> Result<i64, Failure> {
    if order.amount == 0 {
        return Err(Failure(String::new()));
    }
    post(tx, &order).await
}

/// A connection behind an alias is one all the same.
#[idempotent(key = "order.id", transaction = tx, fingerprint = "order.amount")]
pub async fn charge_in(tx: &mut sqlx::PgTransaction<'_>, order: Order, _note: &str) -> Result<(), Failure> {
    post(tx, &order).await.map(drop)
}

/// Methods, and one that another attribute rewrites.
#[derive(Debug)]
pub struct Ledger;

impl Ledger {
    /// A method.
    #[idempotent(key = "order.id", name = "ledger/charge", transaction = tx, on_error = "refuse")]
    pub async fn charge(&self, tx: &mut Transaction<'_, Postgres>, order: Order) -> Result<i64, Failure> {
        post(tx, &order).await
    }
}

/// Boxed by another attribute.
#[async_trait::async_trait]
pub trait Charges {
    /// A method of a trait.
    async fn charge(&self, tx: &mut Transaction<'_, Postgres>, order: Order) -> Result<i64, Failure>;
}

#[async_trait::async_trait]
impl Charges for Ledger {
    #[idempotent(key = "order.id", name = "charges/charge", transaction = tx)]
    async fn charge(&self, tx: &mut Transaction<'_, Postgres>, order: Order) -> Result<i64, Failure> {
        post(tx, &order).await
    }
}

macro_rules! charges {
    ($name:ident, $tx:ident: $connection:ty) => {
        /// Made by a macro.
        #[idempotent(key = "order.id", transaction = $tx)]
        pub async fn $name($tx: $connection, order: Order) -> Result<i64, Failure> {
            post($tx, &order).await
        }
    };
}

charges!(charge_made, transaction: &mut PgConnection);

/// Whether a caller may send it to another thread.
pub const fn sendable<T: Send>(_: &T) {}

/// It is: the future of a call in a transaction is `Send`.
pub async fn send(tx: &mut Transaction<'_, Postgres>, order: Order) -> Result<i64, Failure> {
    let call = charge(tx, order);
    sendable(&call);
    call.await
}
