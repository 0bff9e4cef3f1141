//! A simulated payment gateway. As a real one does, it charges whenever it is asked to: it knows no duplicates.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::ledger::{Charge, Ledger};
use crate::request::{Behaviour, Failure, Order};

/// The way to the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    ledger: Arc<Ledger>,
    behaviour: Behaviour,
}

/// Why there was no charge, or none that the gateway told of.
#[derive(Debug)]
pub(crate) enum GatewayError {
    /// It could not be reached, so it has done nothing.
    Down,
    /// The card's bank said no. This is an answer as good as a charge.
    Declined(&'static str),
    /// It was asked and did not answer. It may have charged.
    NoAnswer,
    /// The simulation itself has failed.
    Ledger(io::Error),
}

impl Gateway {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self { ledger, behaviour: Behaviour::default() }
    }

    /// The same gateway on a good or a bad day.
    pub(crate) fn behaving(&self, behaviour: Behaviour) -> Self {
        Self { behaviour, ..self.clone() }
    }

    /// Connects, which charges nothing yet.
    pub(crate) async fn connect(&self) -> Result<Connection, GatewayError> {
        sleep(Duration::from_millis(10)).await;
        match self.behaviour.fails {
            Some(Failure::BeforeCharging) => Err(GatewayError::Down),
            _ => Ok(Connection(self.clone())),
        }
    }
}

/// A connection to the gateway.
#[derive(Debug)]
pub(crate) struct Connection(Gateway);

impl Connection {
    /// Charges the order's card and gives the charge's id.
    pub(crate) async fn charge(self, order: &Order) -> Result<String, GatewayError> {
        let Gateway { ledger, behaviour } = self.0;
        // The charge happens half way: whoever dies while it waits for the answer may or may not have charged.
        let half = behaviour.takes() / 2;
        sleep(half).await;
        if let Some(reason) = declines(&order.card) {
            return Err(GatewayError::Declined(reason));
        }
        let id = enter(ledger, order).await.map_err(GatewayError::Ledger)?;
        sleep(half).await;
        match behaviour.fails {
            Some(Failure::AfterCharging) => Err(GatewayError::NoAnswer),
            _ => Ok(id),
        }
    }
}

/// Test cards that are always declined, as gateways have them.
fn declines(card: &str) -> Option<&'static str> {
    match card {
        "tok_declined" => Some("the bank declined the card"),
        "tok_insufficient_funds" => Some("insufficient funds"),
        "tok_expired" => Some("the card has expired"),
        _ => None,
    }
}

/// Writes the charge down before anybody hears of it, on a thread that may wait for the disk.
async fn enter(ledger: Arc<Ledger>, order: &Order) -> io::Result<String> {
    let id = format!("ch_{:016x}", rand::random::<u64>());
    let charge =
        Charge { id: id.clone(), order: order.id.clone(), amount: order.amount, card: order.card.clone() };
    spawn_blocking(move || ledger.append(&charge)).await??;
    Ok(id)
}
