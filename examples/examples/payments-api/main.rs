//! A payment service in front of which stands the `Idempotency-Key` layer.
//!
//! ```sh
//! cargo run --example payments-api -- --listen 127.0.0.1:8080
//! curl -i -H 'Idempotency-Key: order-1' -H 'content-type: application/json' \
//!     -d '{"order_id":"order-1","amount":250,"currency":"EUR"}' http://127.0.0.1:8080/payments
//! ```
//!
//! Sent again, the second command gets the same response, and `GET /ledger` still tells of one charge.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use clap::Parser;
use idempotent_runtime::Idempotency;
use idempotent_runtime::http::{IdempotencyLayer, Principal};
use tokio::net::TcpListener;

use ledger::Ledger;

mod document;
mod handlers;
mod ledger;

/// Serves payments and refunds, each of them once for each Idempotency-Key.
#[derive(Debug, Parser)]
#[command(name = "payments-api")]
struct Arguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// The store of responses: sqlite:…, or with its feature postgres://…
    /// [default: the file payments.db in the folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// The folder of the ledger of charges, and of the default store [default: target/payments-api]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// What the handlers share.
#[derive(Clone, Debug)]
struct App {
    ledger: Arc<Ledger>,
    layer: IdempotencyLayer,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let folder = arguments.folder.unwrap_or_else(|| {
        // In the workspace, whatever the current directory is.
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/payments-api"))
    });
    std::fs::create_dir_all(&folder)?;
    let store = arguments.store.unwrap_or_else(|| format!("sqlite:{}", folder.join("payments.db").display()));
    let idempotency = Idempotency::connect(&store).await?;
    // One merchant. With several, `Principal::of` tells them apart.
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant())
        .required()
        .docs_url("/idempotency")
        .build()?;
    let ledger = Arc::new(Ledger::open(&folder.join("charges.jsonl"))?);
    let app = App { ledger, layer: layer.clone() };

    let router = Router::new()
        .route("/payments", post(handlers::pay))
        .route("/refunds", post(handlers::refund))
        // Only what is above is protected.
        .route_layer(layer.clone())
        .route("/ledger", get(handlers::balance))
        .route("/openapi.json", get(document::openapi))
        .route("/idempotency", get(document::policy))
        .with_state(app);
    let listener = TcpListener::bind(arguments.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router).with_graceful_shutdown(interrupted()).await?;
    // Handlers whose clients have gone are still at work: their charges have to be recorded.
    layer.shutdown().await;
    Ok(())
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
