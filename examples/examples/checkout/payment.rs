//! The function that this example is about.

use std::fmt;

use idempotent_runtime::{OnError, attempt, idempotent};
use serde::{Deserialize, Serialize};

use crate::gateway::{Gateway, GatewayError};
use crate::request::{Amount, Order};

/// Charges an order. Called again with the same order it gives the first call's answer, and charges nothing.
///
/// - `name` is what the records are filed under, so that the function can move to another module.
/// - `ttl`: after that an order could be charged again, so it is longer than any client goes on asking.
/// - `skip` leaves out what a retry may change: the way to the gateway, and the client's time of day.
/// - `wait`: a double click gets the first click's answer if it comes within that time, else [`InProgress`].
/// - `lease`: a killed process counts as dead that soon. A live one renews it, so the gateway may take longer.
/// - `on_error` and `on_crash` decide what happens when something goes wrong; see [`meaning`] and below.
///
/// [`InProgress`]: idempotent_runtime::Error::InProgress
#[idempotent(
    name = "charge",
    key = "order.id",
    ttl = "30d",
    skip(gateway, order.requested_at),
    wait = "3s",
    lease = "2s",
    on_error = meaning,
    on_crash = "retry_before_effects"
)]
pub(crate) async fn charge(gateway: &Gateway, order: &Order) -> Result<Receipt, ChargeError> {
    // Up to here nothing was charged: if the process dies, the next call tries again.
    let connection = gateway.connect().await?;
    // From here on it may have been: if the process dies, nobody tries again until somebody has looked.
    attempt()?.begin_effects().await?;
    let charge = connection.charge(order).await?;
    Ok(Receipt { charge, amount: order.amount })
}

/// What each error says about the money.
fn meaning(error: &ChargeError) -> OnError {
    match error {
        // An answer like any other: whoever asks again gets it again.
        ChargeError::Declined { .. } => OnError::Replay,
        // Nothing was charged: whoever asks again is welcome to.
        ChargeError::GatewayDown | ChargeError::Idempotency(_) => OnError::Retry,
        // Nobody knows: whoever asks again must not charge again.
        ChargeError::NoAnswer { .. } => OnError::Refuse,
    }
}

/// The answer to a charged order, as it is stored and replayed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Receipt {
    charge: String,
    amount: Amount,
}

/// Why an order was not charged, or not surely.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum ChargeError {
    Declined {
        reason: String,
    },
    GatewayDown,
    NoAnswer {
        reason: String,
    },
    /// Nothing was charged, and this is why. It concerns this call only and is never stored.
    #[serde(skip)]
    Idempotency(idempotent_runtime::Error),
}

impl From<idempotent_runtime::Error> for ChargeError {
    fn from(error: idempotent_runtime::Error) -> Self {
        Self::Idempotency(error)
    }
}

impl From<GatewayError> for ChargeError {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Down => Self::GatewayDown,
            GatewayError::Declined(reason) => Self::Declined { reason: reason.to_owned() },
            GatewayError::NoAnswer => Self::NoAnswer { reason: "no answer".to_owned() },
            GatewayError::Ledger(error) => Self::NoAnswer { reason: error.to_string() },
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "charged {}, {}", self.amount, self.charge)
    }
}

impl fmt::Display for ChargeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined { reason } => write!(f, "declined: {reason}"),
            Self::GatewayDown => f.write_str("the gateway is down; nothing was charged"),
            Self::NoAnswer { reason } => write!(f, "the gateway may have charged: {reason}"),
            Self::Idempotency(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChargeError {}
