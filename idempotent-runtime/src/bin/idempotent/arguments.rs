//! What the command line says.

use clap::{Args, Parser, Subcommand, ValueEnum};
use idempotent_runtime::store::StateName;

/// Looks into a store of idempotency records, and settles by hand what no call will settle.
///
/// Exit codes: 0 done; 1 not there, changed meanwhile, or not in order; 2 the store or the arguments do not work.
#[derive(Debug, Parser)]
#[command(name = "idempotent", version)]
pub(crate) struct Arguments {
    /// The store, for example `sqlite:FILE` or `postgres://…`
    #[arg(long, env = "IDEMPOTENT_URL", hide_env_values = true, global = true)]
    pub(crate) url: Option<String>,
    /// Print JSON, a line for each record or finding, and one for what was done
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How many seconds the store may take for one answer
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..), global = true)]
    pub(crate) timeout: u64,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows one record
    Inspect {
        /// Its whole key as `list` shows it, with its namespace: `default/charge/order-1`
        key: String,
    },
    /// Shows records; it may read the whole store
    List(List),
    /// Settles a record that is unknown, not retained, or running with its lease over
    Resolve(Resolve),
    /// Deletes a record that is not live: the next call with its key runs as if there had never been one
    Forget {
        /// Its whole key as `list` shows it, with its namespace: `default/charge/order-1`
        key: String,
        /// The owner token that `inspect` showed; without it the record is taken as it is now
        #[arg(long)]
        seen: Option<String>,
        /// Also when it holds a result, which is lost with it
        #[arg(long)]
        with_result: bool,
    },
    /// Deletes expired records
    Purge {
        /// At most so many
        #[arg(long, default_value_t = 100_000)]
        limit: usize,
    },
    /// Examines the store's server: what about it breaks or weakens the promise
    Doctor,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long)]
    pub(crate) state: Option<State>,
    /// Only those that wait for somebody: unknown, or running with the lease over
    #[arg(long)]
    pub(crate) stuck: bool,
    /// Only those of this operation
    #[arg(long)]
    pub(crate) operation: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}

#[derive(Args, Debug)]
pub(crate) struct Resolve {
    /// The record's whole key as `list` shows it, with its namespace: `default/charge/order-1`
    pub(crate) key: String,
    /// The owner token that `inspect` showed; without it the record is taken as it is now
    #[arg(long)]
    pub(crate) seen: Option<String>,
    #[command(flatten)]
    pub(crate) found: Found,
    /// The version of the result's type
    #[arg(long, default_value_t = 1, requires = "done")]
    pub(crate) result_version: u32,
    /// How many seconds the result is kept
    #[arg(long, default_value_t = 86_400, requires = "done")]
    pub(crate) ttl: u64,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Found {
    /// It happened, with this result, as the JSON of the function's `Ok` type. Nobody checks here that it fits the type:
    /// if it does not, duplicates get `Unreadable`. With a codec, resolve in the application
    #[arg(long, value_name = "JSON")]
    pub(crate) done: Option<String>,
    /// It did not happen: the next call with this key runs
    #[arg(long)]
    pub(crate) not_done: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum State {
    Running,
    Completed,
    Failed,
    NotRetained,
    Unknown,
}

impl From<State> for StateName {
    fn from(state: State) -> Self {
        match state {
            State::Running => Self::Running,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
            State::NotRetained => Self::NotRetained,
            State::Unknown => Self::Unknown,
        }
    }
}
