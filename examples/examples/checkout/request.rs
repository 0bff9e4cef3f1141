//! What clients send: a request with the order in it.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One line of the input: a request as it arrives at the service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// Every try has an id of its own, so it is no key: a retry would not be recognised.
    pub(crate) id: String,
    /// When it arrives, counted from the start. Requests with the same time are sent together.
    #[serde(default)]
    at_ms: u32,
    pub(crate) order: Order,
    /// How the gateway will treat this request. The service knows nothing of it.
    #[serde(default)]
    pub(crate) gateway: Behaviour,
    /// For the reader.
    #[serde(default)]
    pub(crate) note: String,
}

impl Request {
    pub(crate) fn arrives_after(&self) -> Duration {
        Duration::from_millis(self.at_ms.into())
    }
}

/// What is to be paid. The client sends the same order again when it retries.
// A field that this program does not know would be in no fingerprint, so an order that has one is refused.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// The key. A client that forgets it sends null, or nothing.
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) customer: String,
    pub(crate) amount: Amount,
    /// The token of a card, never its number.
    pub(crate) card: String,
    /// When the client sent it, by its own clock: another time at each try.
    #[serde(default)]
    pub(crate) requested_at: String,
}

/// An amount of money.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amount {
    cents: NonZeroU64,
    currency: Currency,
}

/// The currencies that the service takes: those with cents.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[expect(clippy::upper_case_acronyms, reason = "this is how ISO 4217 writes them")]
enum Currency {
    CHF,
    EUR,
    GBP,
    USD,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.cents.get();
        write!(f, "{}.{:02} {:?}", cents / 100, cents % 100, self.currency)
    }
}

/// How the simulated gateway treats one request.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Behaviour {
    /// From question to answer.
    takes_ms: u32,
    pub(crate) fails: Option<Failure>,
}

/// When the simulated gateway fails.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failure {
    /// It takes no connection.
    BeforeCharging,
    /// It charges, and its answer is lost.
    AfterCharging,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self { takes_ms: 80, fails: None }
    }
}

impl Behaviour {
    pub(crate) fn takes(self) -> Duration {
        Duration::from_millis(self.takes_ms.into())
    }
}
