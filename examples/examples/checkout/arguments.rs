//! What the program is told on its command line, and the files that follow from it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Parser;

/// Sends a file of payment requests through a function that charges each order once.
#[derive(Debug, Parser)]
#[command(name = "checkout", after_help = HOW_TO_READ)]
pub(crate) struct Arguments {
    /// The payment requests, one JSON object a line [default: examples/data/payments.jsonl]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// The SQLite file that remembers what was answered [default: target/checkout/checkout.db]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,

    /// The gateway's ledger of charges [default: the database's name and .ledger.jsonl]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,

    /// Charge without a database, to see how many charges are doubled [default ledger: a new one]
    #[arg(long)]
    pub(crate) unprotected: bool,
}

const HOW_TO_READ: &str = "\
Each request is answered in one of these ways, which the last lines count:
  executed     the gateway was asked, and its answer (charged or declined) was recorded
  replayed     the order was answered before: the same answer again, nothing charged
  in progress  the first request for this order is still at the gateway
  key reused   the order was sent before with other content
  refused      an earlier try may or may not have charged: nobody tries again
  failed       the gateway gave no answer that could be recorded
  missing key  the request has no order id

Run it twice: the second run replays. Kill it on the way and run it again: no order is charged twice.
To start over, delete the database and the ledger.

Exit code: 0 when no order was charged twice (always 0 with --unprotected), 1 when one was,
2 when a file or an argument is unusable.";

/// Charges in the middle of a database would destroy it.
pub(crate) const ONE_FILE: &str = "the database and the ledger cannot be one file";

/// The files of one run.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) input: PathBuf,
    /// None without protection.
    pub(crate) database: Option<PathBuf>,
    pub(crate) ledger: PathBuf,
    /// Nobody named the ledger, and it is of use for one run only.
    pub(crate) ledger_is_scratch: bool,
}

impl Arguments {
    /// Defaults are places in the workspace, whatever the current directory is.
    pub(crate) fn files(&self) -> Result<Files, &'static str> {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = examples.parent().unwrap_or(examples);

        let database = self.database.clone().unwrap_or_else(|| workspace.join("target/checkout/checkout.db"));
        // Each database has a ledger of its own: a new one beside an old ledger would charge the old orders again.
        let ending = if self.unprotected { ".unprotected.jsonl" } else { ".ledger.jsonl" };
        let beside =
            || PathBuf::from([database.as_os_str(), OsStr::new(ending)].into_iter().collect::<OsString>());
        let ledger = self.ledger.clone().unwrap_or_else(beside);

        if database == ledger {
            return Err(ONE_FILE);
        }
        Ok(Files {
            input: self.input.clone().unwrap_or_else(|| examples.join("data/payments.jsonl")),
            database: (!self.unprotected).then_some(database),
            ledger,
            ledger_is_scratch: self.unprotected && self.ledger.is_none(),
        })
    }
}
