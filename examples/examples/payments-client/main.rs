//! Pays orders over a line that loses replies, and shows that each order is charged once.
//!
//! ```sh
//! cargo run --example payments-client
//! ```
//!
//! It builds and starts `payments-api` beside it, or talks to the one at `--url`.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use idempotent_runtime::client::{
    Exchange, IdempotencyMiddleware, RequestKey, RetryPolicy, Vendor, redirects,
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use serde::Deserialize;

use lossy::Line;
use service::Service;

mod lossy;
mod service;

/// Pays orders over a lossy line.
#[derive(Debug, Parser)]
#[command(name = "payments-client")]
struct Arguments {
    /// The service, as http://HOST:PORT [default: payments-api is built and started for this run]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// How many orders are paid, each sent twice
    #[arg(long, default_value_t = 40)]
    orders: u32,

    /// What is lost follows from this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What the ledger of the service says.
#[derive(Debug, Deserialize)]
struct Balance {
    charges: u64,
    orders: u64,
    duplicates: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let service = match &arguments.url {
        Some(url) => Service::at(url)?,
        None => Service::start().await?,
    };
    let line = Line::to(service.address, arguments.seed).await?;
    let client = client()?;
    let (mut sent, mut replayed) = (0, 0);
    let run = std::process::id();
    for number in 1..=arguments.orders {
        let order = format!("order-{run}-{number}");
        // The second time is a double click, or another machine that was told to pay the same order.
        for _ in 0..2 {
            let exchange = pay(&client, line.address, &order).await?;
            println!(
                "{order}: paid after {} {}{}",
                exchange.tries,
                if exchange.tries == 1 { "try" } else { "tries" },
                if exchange.replayed { ", replayed" } else { "" }
            );
            sent += exchange.tries;
            replayed += u32::from(exchange.replayed);
        }
    }
    let balance: Balance = reqwest::get(format!("http://{}/ledger", service.address)).await?.json().await?;
    println!(
        "{sent} requests for {} payments, {} lost on the line, {replayed} replays",
        2 * arguments.orders,
        line.lost()
    );
    println!(
        "ledger: {} charges for {} orders, {} duplicates",
        balance.charges, balance.orders, balance.duplicates
    );
    if balance.duplicates > 0 {
        return Err("an order was charged twice".into());
    }
    Ok(())
}

/// A client that retries under one key.
fn client() -> Result<ClientWithMiddleware, Box<dyn Error>> {
    let policy = RetryPolicy::default()
        .tries(20)
        .budget(10.0)
        .pauses(Duration::from_millis(10), Duration::from_millis(100));
    // A connection for each request, because what the line does, it does to a connection.
    let inner = reqwest::Client::builder()
        .redirect(redirects())
        .pool_max_idle_per_host(0)
        .timeout(Duration::from_secs(5))
        .build()?;
    Ok(ClientBuilder::new(inner).with(IdempotencyMiddleware::with(Vendor::draft(), policy)?).build())
}

/// Pays one order. Its key follows from the order, so that whoever pays it again uses the same.
async fn pay(client: &ClientWithMiddleware, to: SocketAddr, order: &str) -> Result<Exchange, Box<dyn Error>> {
    let response = client
        .post(format!("http://{to}/payments"))
        .header("content-type", "application/json")
        .body(format!("{{\"order_id\":\"{order}\",\"amount\":250,\"currency\":\"EUR\"}}"))
        .with_extension(RequestKey::derived(["payment", order]))
        .send()
        .await?
        .error_for_status()?;
    response.extensions().get::<Exchange>().cloned().ok_or_else(|| "the middleware was not asked".into())
}
