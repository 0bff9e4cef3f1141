//! Two accounts, a thousand transfers between them, each asked for several times, by processes that are killed at any
//! moment: at the end every transfer is there exactly once, to the cent.
//!
//! ```text
//! cargo run --example transfer
//! cargo run --example transfer -- --database postgres://localhost/test
//! cargo run --example transfer -- --database mysql://localhost/test
//! ```
//!
//! Without `--database` it is a SQLite file. The tables `transfer_…` of the database are made anew.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use bank::Totals;
use clap::Parser;
use examples::killing::kill_and_let_end;

mod bank;

#[derive(Debug, Parser)]
#[command(
    name = "transfer",
    about = "Transfers between two accounts, exactly once, by processes that are killed"
)]
struct Arguments {
    /// A `postgres:`, `mysql:` or `sqlite:` URL [default: a SQLite file in target/transfer]
    #[arg(long)]
    database: Option<String>,

    /// How many transfers
    #[arg(long, default_value_t = 1000)]
    transfers: u32,

    /// How many processes are killed
    #[arg(long, default_value_t = 20)]
    kills: u32,

    /// How many processes work at a time
    #[arg(long, default_value_t = 3)]
    workers: usize,

    /// Work off all transfers, and end: what the others are started with
    #[arg(long, hide = true)]
    work: bool,
}

/// A file in the workspace, whatever the current directory is.
fn default_database() -> std::io::Result<String> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/transfer"));
    std::fs::create_dir_all(&folder)?;
    Ok(format!("sqlite:{}", folder.canonicalize()?.join("transfer.db").display()))
}

async fn run(arguments: Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let Arguments { database, transfers, kills, workers, work } = arguments;
    let database = database.map_or_else(default_database, Ok)?;
    if work {
        bank::work(&database, transfers).await?;
        return Ok(ExitCode::SUCCESS);
    }
    bank::make_anew(&database).await?;
    let program = std::env::current_exe()?;
    let start = || {
        Command::new(&program)
            .args(["--work", "--database", &database, "--transfers", &transfers.to_string()])
            .stdin(Stdio::null())
            .spawn()
    };
    let ended_well = kill_and_let_end(start, workers, kills).await?;
    let (found, wanted) = (bank::totals(&database).await?, Totals::of(transfers));
    println!("{transfers} transfers, {kills} processes killed");
    println!("postings: {}, of {}; different ones: {}", found.postings, wanted.postings, found.different);
    println!("balances: {:?}, of {:?}", found.balances, wanted.balances);
    if ended_well && found == wanted {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("not every transfer is there exactly once");
    Ok(ExitCode::FAILURE)
}

#[tokio::main]
async fn main() -> ExitCode {
    run(Arguments::parse()).await.unwrap_or_else(|error| {
        eprintln!("{error}{}", error.source().map(|source| format!(": {source}")).unwrap_or_default());
        ExitCode::FAILURE
    })
}
