//! The SQLite store, with every write on the disk, against transactions made by hand.
//!
//! The files are in the build directory; with `IDEMPOTENT_BENCH_DIR` in the directory that it names. It has to be on a
//! disk: in a file system in memory, durability costs nothing.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use idempotent_runtime::Idempotency;
use idempotent_runtime::stores::SqliteStore;
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use support::shop::{Order, Receipt, charge};
use support::{Ratio, count, median, nanoseconds, ratio};

#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod support;

const CALLERS: u64 = 64;

/// A new file, and what SQLite has put beside it, for as long as this lives.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let directory = std::env::var_os("IDEMPOTENT_BENCH_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
        let file = Self(directory.join(format!("{name}-{}.db", std::process::id())));
        file.remove();
        file
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A table of the same content by hand: one transaction reserves, another completes, each durable by itself.
struct ByHand(Connection);

impl ByHand {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        let schema = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE records (
                key TEXT PRIMARY KEY, owner BLOB, fingerprint BLOB, state TEXT, result BLOB, expires_at INTEGER
            ) WITHOUT ROWID;";
        connection.execute_batch(schema).unwrap();
        Self(connection)
    }

    fn calls(&self, orders: &[Order], receipts: &[Receipt]) {
        let reserve = "INSERT INTO records VALUES (?, ?, ?, 'running', NULL, 1) ON CONFLICT DO NOTHING";
        let complete = "UPDATE records SET state = 'completed', result = ? WHERE key = ? AND owner = ?";
        let mut reserve = self.0.prepare(reserve).unwrap();
        let mut complete = self.0.prepare(complete).unwrap();
        for (order, receipt) in orders.iter().zip(receipts) {
            assert_eq!(reserve.execute(params![order.id, [0_u8; 16], [0_u8; 32]]), Ok(1));
            let result = serde_json::to_vec(receipt).unwrap();
            assert_eq!(complete.execute(params![result, order.id, [0_u8; 16]]), Ok(1));
        }
    }
}

fn by_hand(table: &ByHand, first: u64, operations: u64) -> Duration {
    let orders: Vec<Order> = (first..first + operations).map(Order::new).collect();
    let receipts: Vec<Receipt> = orders.iter().map(Receipt::new).collect();
    let started = Instant::now();
    table.calls(&orders, &receipts);
    started.elapsed()
}

/// So many callers make so many first calls each, one after the other.
fn first_calls(
    runtime: &Runtime,
    idempotency: &Idempotency,
    first: u64,
    callers: u64,
    each: u64,
) -> Duration {
    runtime.block_on(async {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for caller in 0..callers {
            let idempotency = idempotency.clone();
            tasks.spawn(async move {
                for call in 0..each {
                    let order = Order::new(first + caller * each + call);
                    let receipt = Some(Receipt::new(&order));
                    charge(&idempotency, &order, receipt).await.unwrap();
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        started.elapsed()
    })
}

fn durable(c: &mut Criterion<Ratio>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let (ours, theirs) = (File::new("store"), File::new("by-hand"));
    let idempotency = Idempotency::new(runtime.block_on(SqliteStore::open(&ours.0)).unwrap());
    let table = ByHand::open(&theirs.0);
    let mut next = 0;
    let mut numbers = |count: u64| {
        next += count;
        next - count
    };

    let mut each = (Vec::new(), Vec::new());
    ratio(c, "throughput of 64 callers over one transaction for each operation", || {
        let (many, few) = (CALLERS * 50, 300);
        let group = first_calls(&runtime, &idempotency, numbers(many), CALLERS, many / CALLERS);
        let single = by_hand(&table, numbers(few), few);
        each.0.push(group.as_secs_f64() * 1e9 / count(many));
        each.1.push(single.as_secs_f64() * 1e9 / count(few));
        (single.as_secs_f64() / count(few)) / (group.as_secs_f64() / count(many))
    });
    println!("64 callers {} a call; by hand {}\n", nanoseconds(median(each.0)), nanoseconds(median(each.1)));

    let mut each = (Vec::new(), Vec::new());
    ratio(c, "a single caller over two durable transactions", || {
        let mut spans = (Duration::ZERO, Duration::ZERO);
        let (turns, calls) = (10, 20);
        for _ in 0..turns {
            spans.0 += first_calls(&runtime, &idempotency, numbers(calls), 1, calls);
            spans.1 += by_hand(&table, numbers(calls), calls);
        }
        each.0.push(spans.0.as_secs_f64() * 1e9 / count(turns * calls));
        each.1.push(spans.1.as_secs_f64() * 1e9 / count(turns * calls));
        spans.0.as_secs_f64() / spans.1.as_secs_f64()
    });
    println!(
        "single caller {} a call; by hand {}\n",
        nanoseconds(median(each.0)),
        nanoseconds(median(each.1))
    );
}

criterion_group! {
    name = benches;
    config = support::criterion(20, Duration::from_secs(5));
    targets = durable
}
criterion_main!(benches);
