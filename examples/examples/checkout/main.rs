//! A payment service charges cards through a gateway that charges as often as it is asked. Its clients ask again after
//! a timeout and click twice; the service charges each order once all the same.
//!
//! ```text
//! cargo run --example checkout                     # the first time, orders are charged
//! cargo run --example checkout                     # the second time, every answer is replayed
//! cargo run --example checkout -- --unprotected    # what would have happened without idempotency
//! ```
//!
//! Start with `payment.rs`: the one function that matters. Around it, `request.rs` says what clients send, `gateway.rs`
//! and `ledger.rs` are the world outside, `sending.rs` plays the clients, and `report.rs` tells what happened.

mod answer;
mod arguments;
mod gateway;
mod input;
mod ledger;
mod payment;
mod report;
mod request;
mod sending;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use idempotent_runtime::Idempotency;
use idempotent_runtime::stores::SqliteStore;

use crate::arguments::{Arguments, Files, ONE_FILE};
use crate::gateway::Gateway;
use crate::input::Input;
use crate::ledger::Ledger;
use crate::report::Report;

#[tokio::main]
async fn main() -> ExitCode {
    match checkout(&Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprint!("checkout: {error}");
            // The store's error says that it failed, and its source says why.
            let mut cause = error.source();
            while let Some(error) = cause {
                eprint!(": {error}");
                cause = error.source();
            }
            eprintln!();
            ExitCode::from(2)
        }
    }
}

async fn checkout(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let files = arguments.files()?;
    let input = Input::read(&files.input)?;
    let ledger = Arc::new(open_ledger(&files)?);
    // There is a ledger by now, so this also sees through links and through another way to write the name.
    if let Some(database) = &files.database
        && database.canonicalize().ok() == Some(files.ledger.canonicalize()?)
    {
        return Err(ONE_FILE.into());
    }

    let idempotency = match &files.database {
        Some(database) => protected_by(database).await?,
        None => Idempotency::disabled(),
    };
    idempotency.install()?;

    let mut report = Report::begin(&files, &input);
    sending::send(input.requests, &Gateway::new(Arc::clone(&ledger)), |request, answer| {
        report.row(&request, &answer);
    })
    .await?;
    // A call gives its caller the result even when the store is slow to take it. What is still on its way to the
    // store gets there before the program ends.
    idempotency.shutdown().await;

    let balance = ledger.balance()?;
    report.end(&balance)?;

    // Without protection the doubled charges are what was to be shown, and no failure.
    let sound = balance.duplicates() == 0 || arguments.unprotected;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The service's memory of what it has answered: one SQLite file, which outlives the process.
async fn protected_by(database: &Path) -> Result<Idempotency, Box<dyn Error>> {
    if let Some(folder) = database.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let store = SqliteStore::open(database).await?;
    Ok(Idempotency::builder().store(store).namespace("checkout").build()?)
}

fn open_ledger(files: &Files) -> Result<Ledger, Box<dyn Error>> {
    // Without protection every run charges everything again. Only the doubles within one run are of interest.
    if files.ledger_is_scratch && files.ledger.exists() {
        std::fs::remove_file(&files.ledger)?;
    }
    Ok(Ledger::open(&files.ledger)?)
}
