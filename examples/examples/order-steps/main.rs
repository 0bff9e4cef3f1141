//! An order is done in four steps: stock is reserved, the card is charged, the parcel is shipped, a mail is sent. The process may
//! die after any of them; started again, it goes on where it stopped, and nothing is done twice.
//!
//! ```sh
//! cargo run --example order-steps -- --crash-after charge   # dies
//! cargo run --example order-steps                           # ships and mails
//! cargo run --example order-steps                           # has nothing left to do
//! cargo run --example order-steps -- --order order-2 --crash-after ship   # another order
//! cargo run --example order-steps -- --kills 20             # a hundred orders, by processes that are killed at any moment
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use examples::killing::kill_and_let_end;
use idempotent_runtime::{Idempotency, Outcome, idempotent, step, stores, with_outcome};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use world::World;

mod world;

/// Does an order in four steps, each of them once.
#[derive(Debug, Parser)]
#[command(name = "order-steps")]
struct Arguments {
    /// The order
    #[arg(long, default_value = "order-1")]
    order: String,

    /// Die after this step, before the next one
    #[arg(long, value_enum, value_name = "STEP")]
    crash_after: Option<Part>,

    /// Where the database and the ledger of what was done are [default: target/order-steps]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// The URL of the store [default: a SQLite file in the folder]
    #[arg(long, value_name = "URL")]
    database: Option<String>,

    /// Have many orders done by processes, and kill so many of them
    #[arg(long, value_name = "N", conflicts_with = "crash_after")]
    kills: Option<u32>,

    /// How many orders these do
    #[arg(long, default_value_t = 100)]
    orders: u32,

    /// Do all orders, and end: what the others are started with
    #[arg(long, hide = true)]
    work: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Reserve,
    Charge,
    Ship,
    Mail,
}

/// What the customer is told.
#[derive(Debug, Deserialize, Serialize)]
struct Done {
    parcel: String,
    receipt: String,
}

/// Its result is kept for a day; an attempt that died is continued by the next call. A step whose process died before its
/// result was written down is in doubt, and `on_crash = "refuse"` (the default) would leave that to a person. Here each
/// effect has a key of its own, by which the other side knows it again, so that running it again is safe.
#[idempotent(key = "order", on_crash = "retry", store = idempotency, skip(idempotency, world))]
async fn process(
    idempotency: &Idempotency,
    world: Arc<World>,
    order: String,
) -> Result<Done, idempotent_runtime::Error> {
    step("reserve", || world.act(Part::Reserve, &order)).await?;
    world.may_crash(Part::Reserve);
    let receipt = step("charge", || world.act(Part::Charge, &order)).await?;
    world.may_crash(Part::Charge);
    let parcel = step("ship", || world.act(Part::Ship, &order)).await?;
    world.may_crash(Part::Ship);
    step("mail", || world.act(Part::Mail, &order)).await?;
    world.may_crash(Part::Mail);
    Ok(Done { parcel, receipt })
}

/// How long a process that is killed keeps its order from the others. Short, so that nobody has to wait long.
const LEASE: Duration = Duration::from_secs(2);

async fn open(database: &str) -> Result<Idempotency, Box<dyn Error>> {
    let store = stores::open(database).await?;
    Ok(Idempotency::builder().store(store).lease(LEASE).wait(10 * LEASE).build()?)
}

/// Does one order, and says how.
async fn one(idempotency: &Idempotency, world: &Arc<World>, order: String) -> Result<(), Box<dyn Error>> {
    let (done, outcome) = with_outcome(process(idempotency, Arc::clone(world), order.clone())).await;
    let Done { parcel, receipt } = done?;
    if outcome == Some(Outcome::Replayed) {
        println!("{order} was done before: {receipt}, {parcel} (give --order NAME for another)");
    } else {
        println!("{order} is done: {receipt}, {parcel}");
    }
    Ok(())
}

/// Does all orders, in an order of this process's own.
async fn all(idempotency: &Idempotency, world: &Arc<World>, orders: u32) -> Result<(), Box<dyn Error>> {
    let mut numbers: Vec<u32> = (1..=orders).collect();
    numbers.shuffle(&mut rand::rng());
    for number in numbers {
        process(idempotency, Arc::clone(world), format!("order-{number}")).await?;
    }
    Ok(())
}

/// Starts processes that do all orders, and kills some.
async fn kill(kills: u32, orders: u32, folder: &Path, database: &str) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let start = || {
        let mut command = Command::new(&program);
        command.args(["--work", "--orders", &orders.to_string(), "--database", database, "--folder"]);
        command.arg(folder).stdin(Stdio::null()).spawn()
    };
    if !kill_and_let_end(start, 3, kills).await? {
        return Err("a process did not do its orders".into());
    }
    println!("{orders} orders, {kills} processes killed");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let folder = arguments.folder.unwrap_or_else(|| {
        // In the workspace, whatever the current directory is.
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/order-steps"))
    });
    std::fs::create_dir_all(&folder)?;
    let own = format!("sqlite:{}", folder.join("orders.db").display());
    let database = arguments.database.unwrap_or(own);
    let world = Arc::new(World::open(&folder.join("done.jsonl"), arguments.crash_after)?);

    match arguments.kills {
        Some(kills) => kill(kills, arguments.orders, &folder, &database).await?,
        None if arguments.work => all(&open(&database).await?, &world, arguments.orders).await?,
        None => one(&open(&database).await?, &world, arguments.order).await?,
    }
    if arguments.work {
        return Ok(());
    }
    let (acts, twice) = world.count()?;
    println!("ledger: {acts} acts, {twice} of them twice");
    if twice > 0 {
        return Err("something was done twice".into());
    }
    Ok(())
}
