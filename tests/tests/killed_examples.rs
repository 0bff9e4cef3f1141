//! The examples whose processes are killed, on a real database of each kind: at the end everything is there once.
//!
//! `KILLS` says how many processes die, in place of 50.

#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

use std::process::Command;
use std::sync::OnceLock;

use tests::examples::program;
use tests::servers::Folder;
use tests::servers::mariadb::MariaDb;
use tests::servers::postgres::shared;

fn mariadb() -> &'static MariaDb {
    static SERVER: OnceLock<MariaDb> = OnceLock::new();
    SERVER.get_or_init(MariaDb::start)
}

fn kills() -> String {
    std::env::var("KILLS").unwrap_or_else(|_| "50".into())
}

/// Runs an example to its end, and gives what it says last.
fn last_lines(command: &mut Command) -> String {
    let output = command.args(["--kills", &kills()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = said.lines().collect();
    let last = lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("\n");
    println!("{last}");
    last
}

fn transfers_are_exact(database: &str) {
    let said = last_lines(Command::new(program("transfer")).args(["--database", database]));
    assert!(said.ends_with("balances: [-47995, 47995], of [-47995, 47995]"), "{said}");
    assert!(said.contains("postings: 2000, of 2000; different ones: 2000"), "{said}");
}

fn orders_are_done_once(database: &str) {
    let folder = Folder::new("order-steps");
    let mut command = Command::new(program("order-steps"));
    let said = last_lines(command.args(["--database", database, "--folder"]).arg(folder.path()));
    assert!(said.ends_with("ledger: 400 acts, 0 of them twice"), "{said}");
}

#[test]
fn transfers_on_sqlite_are_exact() {
    let folder = Folder::new("transfer");
    transfers_are_exact(&format!("sqlite:{}", folder.path().join("transfer.db").display()));
}

#[test]
fn transfers_on_postgres_are_exact() {
    transfers_are_exact(&shared().database());
}

#[test]
fn transfers_on_mariadb_are_exact() {
    transfers_are_exact(&mariadb().database("transfer"));
}

#[test]
fn orders_on_sqlite_are_done_once() {
    let folder = Folder::new("orders");
    orders_are_done_once(&format!("sqlite:{}", folder.path().join("orders.db").display()));
}

#[test]
fn orders_on_postgres_are_done_once() {
    orders_are_done_once(&shared().database());
}

#[test]
fn orders_on_mariadb_are_done_once() {
    orders_are_done_once(&mariadb().database("orders"));
}
