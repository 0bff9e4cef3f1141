//! An order is done in four steps: stock is reserved, the card is charged, the parcel is shipped, a mail is sent. The process may
//! die after any of them; started again, it goes on where it stopped, and nothing is done twice.
//!
//! ```sh
//! cargo run --example order-steps -- --crash-after charge   # dies
//! cargo run --example order-steps                           # ships and mails
//! cargo run --example order-steps                           # has nothing left to do
//! cargo run --example order-steps -- --order order-2 --crash-after ship   # another order
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use idempotent_runtime::stores::SqliteStore;
use idempotent_runtime::{Idempotency, Outcome, idempotent, step, with_outcome};
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

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let folder = arguments.folder.unwrap_or_else(|| {
        // In the workspace, whatever the current directory is.
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/order-steps"))
    });
    std::fs::create_dir_all(&folder)?;
    let store = SqliteStore::open(folder.join("orders.db")).await?;
    // A short lease, so that nobody has to wait long for an attempt that died.
    let lease = std::time::Duration::from_secs(1);
    let idempotency = Idempotency::builder().store(store).lease(lease).wait(5 * lease).build()?;
    let world = Arc::new(World::open(&folder.join("done.jsonl"), arguments.crash_after)?);

    let (done, outcome) =
        with_outcome(process(&idempotency, Arc::clone(&world), arguments.order.clone())).await;
    let Done { parcel, receipt } = done?;
    if outcome == Some(Outcome::Replayed) {
        println!("{} was done before: {receipt}, {parcel} (give --order NAME for another)", arguments.order);
    } else {
        println!("{} is done: {receipt}, {parcel}", arguments.order);
    }
    let (acts, twice) = world.count()?;
    println!("ledger: {acts} acts, {twice} of them twice");
    if twice > 0 {
        return Err("something was done twice".into());
    }
    Ok(())
}
