//! Two accounts, a thousand transfers between them, each asked for several times, by processes that are killed at any
//! moment: at the end every transfer is there exactly once, to the cent.
//!
//! ```text
//! cargo run --example transfer --features postgres -- --database postgres://localhost/test
//! ```
//!
//! The tables `transfer_…` of that database are made anew.

use std::error::Error as StdError;
use std::fmt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use idempotent_runtime::stores::PostgresStore;
use idempotent_runtime::{Error, Idempotency, idempotent};
use rand::seq::SliceRandom;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgPool, Postgres, Transaction};

const TABLE: &str = "transfer_records";

#[derive(Parser)]
#[command(about = "Transfers between two accounts, exactly once, by processes that are killed")]
struct Arguments {
    /// The URL of a PostgreSQL database.
    #[arg(long)]
    database: String,
    /// How many transfers.
    #[arg(long, default_value_t = 1000)]
    transfers: u32,
    /// How many processes are killed.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// How many processes work at a time.
    #[arg(long, default_value_t = 3)]
    workers: usize,
    /// Works off all transfers, and ends. What the others are started with.
    #[arg(long, hide = true)]
    work: bool,
}

#[derive(Debug)]
enum TransferError {
    Idempotency(Error),
    Database(sqlx::Error),
}

impl From<Error> for TransferError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl From<sqlx::Error> for TransferError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the transfer was not made")
    }
}

impl StdError for TransferError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(match self {
            Self::Idempotency(error) => error,
            Self::Database(error) => error,
        })
    }
}

/// Moves money from the first account to the second.
#[idempotent(key = "id", name = "transfer", transaction = tx, wait = "30s")]
async fn transfer(tx: &mut Transaction<'_, Postgres>, id: u32, cents: i64) -> Result<i64, TransferError> {
    for (account, cents) in [(1_i64, -cents), (2, cents)] {
        let posting = sqlx::query("INSERT INTO transfer_postings VALUES ($1, $2, $3)");
        posting.bind(i64::from(id)).bind(account).bind(cents).execute(&mut **tx).await?;
        let balance = sqlx::query("UPDATE transfer_accounts SET cents = cents + $2 WHERE id = $1");
        balance.bind(account).bind(cents).execute(&mut **tx).await?;
    }
    Ok(cents)
}

fn cents(id: u32) -> i64 {
    i64::from(id % 97) + 1
}

/// Asks for every transfer twice, in an order of this process's own.
async fn work(pool: PgPool, transfers: u32) -> Result<(), Box<dyn StdError>> {
    let store = PostgresStore::builder(pool.clone()).table(TABLE).open().await?;
    let idempotency = Idempotency::new(store);
    let mut ids: Vec<u32> = (0..transfers).chain(0..transfers).collect();
    ids.shuffle(&mut rand::rng());
    for id in ids {
        idempotency.transaction(&pool, |tx| Box::pin(transfer(tx, id, cents(id)))).await?;
    }
    Ok(())
}

fn start(arguments: &Arguments) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["--work", "--database", &arguments.database, "--transfers", &arguments.transfers.to_string()])
        .stdin(Stdio::null())
        .spawn()
}

/// Starts workers, kills them and starts others, and lets the last ones end.
async fn kill_and_let_end(arguments: &Arguments) -> Result<bool, Box<dyn StdError>> {
    let mut workers = Vec::new();
    for _ in 0..arguments.workers.max(1) {
        workers.push(start(arguments)?);
    }
    for _ in 0..arguments.kills {
        tokio::time::sleep(Duration::from_millis(rand::random_range(20..200))).await;
        let mut killed = workers.remove(0);
        let sent = killed.kill();
        killed.wait()?;
        sent?;
        workers.push(start(arguments)?);
    }
    let mut all_ended_well = true;
    for mut worker in workers {
        all_ended_well &= worker.wait()?.success();
    }
    Ok(all_ended_well)
}

async fn run(arguments: &Arguments) -> Result<bool, Box<dyn StdError>> {
    let pool = PgPoolOptions::new().max_connections(4).connect(&arguments.database).await?;
    if arguments.work {
        return work(pool, arguments.transfers).await.map(|()| true);
    }
    pool.execute(
        "DROP TABLE IF EXISTS transfer_records, transfer_postings, transfer_accounts; \
         CREATE TABLE transfer_accounts (id bigint PRIMARY KEY, cents bigint NOT NULL); \
         CREATE TABLE transfer_postings (transfer bigint NOT NULL, account bigint NOT NULL, cents bigint NOT NULL); \
         INSERT INTO transfer_accounts VALUES (1, 0), (2, 0)",
    )
    .await?;
    let ended_well = kill_and_let_end(arguments).await?;
    let postings: i64 = sqlx::query_scalar("SELECT count(*) FROM transfer_postings").fetch_one(&pool).await?;
    let distinct = "SELECT count(DISTINCT (transfer, account)) FROM transfer_postings";
    let distinct: i64 = sqlx::query_scalar(distinct).fetch_one(&pool).await?;
    let balances = sqlx::query_scalar("SELECT cents FROM transfer_accounts ORDER BY id");
    let balances: Vec<i64> = balances.fetch_all(&pool).await?;
    let (wanted, sum) =
        (i64::from(arguments.transfers) * 2, (0..arguments.transfers).map(cents).sum::<i64>());
    println!("{} transfers, {} processes killed", arguments.transfers, arguments.kills);
    println!("postings: {postings}, of {wanted}; different ones: {distinct}");
    println!("balances: {balances:?}, of {:?}", [-sum, sum]);
    Ok(ended_well && postings == wanted && distinct == wanted && balances == [-sum, sum])
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("not every transfer is there exactly once");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}{}", error.source().map(|source| format!(": {source}")).unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}
