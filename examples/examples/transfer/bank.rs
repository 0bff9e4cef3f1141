//! The accounts, in three kinds of database.

use std::error::Error as StdError;
use std::fmt;

use idempotent_runtime::stores::{MySqlStore, PostgresStore, SqliteStore};
use idempotent_runtime::{Error, Idempotency, idempotent};
use rand::seq::SliceRandom;
use sqlx::{AssertSqlSafe, Executor, MySqlPool, PgPool, SqlitePool};

/// The table of records.
const RECORDS: &str = "transfer_records";

/// How much a transfer moves from the first account to the second.
fn cents(id: u32) -> i64 {
    i64::from(id % 97) + 1
}

/// What is there at the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) postings: i64,
    pub(crate) different: i64,
    pub(crate) balances: Vec<i64>,
}

impl Totals {
    /// What should be there.
    pub(crate) fn of(transfers: u32) -> Self {
        let (postings, sum) = (i64::from(transfers) * 2, (0..transfers).map(cents).sum::<i64>());
        Self { postings, different: postings, balances: vec![-sum, sum] }
    }
}

#[derive(Debug)]
pub(crate) enum TransferError {
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

/// By its source the library sees that the database asks for another transaction.
impl StdError for TransferError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(match self {
            Self::Idempotency(error) => error,
            Self::Database(error) => error,
        })
    }
}

/// The same bank in each kind of database; only the types of sqlx and the placeholders differ.
macro_rules! bank {
    ($name:ident, $database:ty, $pool:ty, $placeholders:expr) => {
        mod $name {
            use super::*;

            /// Moves money: two postings and two balances, and the record that it was done, in one commit.
            #[idempotent(key = "id", name = "transfer", transaction = tx, wait = "30s")]
            async fn transfer(
                tx: &mut sqlx::Transaction<'_, $database>,
                id: u32,
                cents: i64,
            ) -> Result<i64, TransferError> {
                let [a, b, c] = $placeholders;
                let post = format!("INSERT INTO transfer_postings VALUES ({a}, {b}, {c})");
                let add = format!("UPDATE transfer_accounts SET cents = cents + {a} WHERE id = {b}");
                for (account, cents) in [(1_i64, -cents), (2, cents)] {
                    let posting = sqlx::query(AssertSqlSafe(post.clone()));
                    posting.bind(i64::from(id)).bind(account).bind(cents).execute(&mut **tx).await?;
                    let balance = sqlx::query(AssertSqlSafe(add.clone()));
                    balance.bind(cents).bind(account).execute(&mut **tx).await?;
                }
                Ok(cents)
            }

            /// Asks for every transfer twice, in an order of this process's own.
            pub(super) async fn work(
                idempotency: Idempotency,
                pool: $pool,
                transfers: u32,
            ) -> Result<(), TransferError> {
                let mut ids: Vec<u32> = (0..transfers).chain(0..transfers).collect();
                ids.shuffle(&mut rand::rng());
                for id in ids {
                    idempotency.transaction(&pool, |tx| Box::pin(transfer(tx, id, cents(id)))).await?;
                }
                Ok(())
            }

            pub(super) async fn make_anew(pool: $pool) -> sqlx::Result<()> {
                for statement in [
                    "DROP TABLE IF EXISTS transfer_records",
                    "DROP TABLE IF EXISTS transfer_records_steps",
                    "DROP TABLE IF EXISTS transfer_records_meta",
                    "DROP TABLE IF EXISTS transfer_postings",
                    "DROP TABLE IF EXISTS transfer_accounts",
                    "CREATE TABLE transfer_accounts (id bigint PRIMARY KEY, cents bigint NOT NULL)",
                    "CREATE TABLE transfer_postings (transfer bigint NOT NULL, account bigint NOT NULL, \
                     cents bigint NOT NULL)",
                    "INSERT INTO transfer_accounts VALUES (1, 0), (2, 0)",
                ] {
                    pool.execute(statement).await?;
                }
                Ok(())
            }

            pub(super) async fn totals(pool: $pool) -> sqlx::Result<Totals> {
                let count = "SELECT count(*) FROM transfer_postings";
                let different =
                    "SELECT count(*) FROM (SELECT DISTINCT transfer, account FROM transfer_postings) AS d";
                let balances = "SELECT cents FROM transfer_accounts ORDER BY id";
                Ok(Totals {
                    postings: sqlx::query_scalar(count).fetch_one(&pool).await?,
                    different: sqlx::query_scalar(different).fetch_one(&pool).await?,
                    balances: sqlx::query_scalar(balances).fetch_all(&pool).await?,
                })
            }
        }
    };
}

bank!(postgres, sqlx::Postgres, PgPool, ["$1", "$2", "$3"]);
bank!(mysql, sqlx::MySql, MySqlPool, ["?", "?", "?"]);
bank!(sqlite, sqlx::Sqlite, SqlitePool, ["?", "?", "?"]);

enum Kind {
    Postgres,
    MySql,
    Sqlite,
}

impl Kind {
    fn of(url: &str) -> Self {
        match url.split(':').next() {
            Some("postgres" | "postgresql") => Self::Postgres,
            Some("mysql" | "mariadb") => Self::MySql,
            _ => Self::Sqlite,
        }
    }
}

/// The file of a `sqlite:` URL.
fn file(url: &str) -> &str {
    let name = url.strip_prefix("sqlite:").unwrap_or(url);
    name.strip_prefix("//").unwrap_or(name)
}

async fn open_file(url: &str) -> sqlx::Result<SqlitePool> {
    SqlitePool::connect_with(
        sqlx::sqlite::SqliteConnectOptions::new().filename(file(url)).create_if_missing(true),
    )
    .await
}

/// Works off all transfers, each of them twice.
pub(crate) async fn work(url: &str, transfers: u32) -> Result<(), Box<dyn StdError>> {
    match Kind::of(url) {
        Kind::Postgres => {
            let pool = PgPool::connect(url).await?;
            let store = PostgresStore::builder(pool.clone()).table(RECORDS).open().await?;
            postgres::work(Idempotency::new(store), pool, transfers).await?;
        }
        Kind::MySql => {
            let pool = MySqlPool::connect(url).await?;
            let store = MySqlStore::builder(pool.clone()).table(RECORDS).open().await?;
            mysql::work(Idempotency::new(store), pool, transfers).await?;
        }
        Kind::Sqlite => {
            let store = SqliteStore::builder(file(url)).table(RECORDS).open().await?;
            sqlite::work(Idempotency::new(store), open_file(url).await?, transfers).await?;
        }
    }
    Ok(())
}

/// Makes the accounts anew, empty, and forgets all transfers.
pub(crate) async fn make_anew(url: &str) -> sqlx::Result<()> {
    match Kind::of(url) {
        Kind::Postgres => postgres::make_anew(PgPool::connect(url).await?).await,
        Kind::MySql => mysql::make_anew(MySqlPool::connect(url).await?).await,
        Kind::Sqlite => sqlite::make_anew(open_file(url).await?).await,
    }
}

pub(crate) async fn totals(url: &str) -> sqlx::Result<Totals> {
    match Kind::of(url) {
        Kind::Postgres => postgres::totals(PgPool::connect(url).await?).await,
        Kind::MySql => mysql::totals(MySqlPool::connect(url).await?).await,
        Kind::Sqlite => sqlite::totals(open_file(url).await?).await,
    }
}
