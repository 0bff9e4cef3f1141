//! The fingerprint against what one would write without it: `serde_json` straight into SHA-256.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use idempotent_runtime::fingerprint::Fingerprinter;
use serde::Serialize;
use sha2::{Digest, Sha256};

use support::shop::Order;
use support::{Ratio, compare_in_turns};

#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod support;

/// Hashes what is written to it.
struct Hashing(Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn canonical<T: Serialize>(value: &T) -> [u8; 32] {
    let mut arguments = Fingerprinter::new();
    arguments.argument("order", value);
    *arguments.finish().unwrap().digest()
}

fn json<T: Serialize>(value: &T) -> [u8; 32] {
    let mut hash = Hashing(Sha256::new());
    serde_json::to_writer(&mut hash, value).unwrap();
    hash.0.finalize().into()
}

fn repeated<T>(value: &T, hash: fn(&T) -> [u8; 32], times: u64) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        black_box(hash(black_box(value)));
    }
    started.elapsed()
}

fn fingerprints(c: &mut Criterion<Ratio>) {
    let against_json = |c: &mut Criterion<Ratio>, name: &str, orders: u64, turn: u64| {
        let orders: Vec<Order> = (0..orders).map(Order::new).collect();
        compare_in_turns(
            c,
            name,
            turn,
            ("canonical", &mut |times| repeated(&orders, canonical, times)),
            &mut [("JSON", &mut |times| repeated(&orders, json, times))],
        );
    };
    // One order is 200 bytes of JSON, and with the comma 201.
    against_json(c, "fingerprint of 200 B over JSON into SHA-256", 1, 1_000);
    against_json(c, "fingerprint of 4 KB over JSON into SHA-256", 4_096 / 201, 100);
    against_json(c, "fingerprint of 1 MB over JSON into SHA-256", (1 << 20) / 201, 1);
}

criterion_group! {
    name = benches;
    config = support::criterion(30, Duration::from_secs(4));
    targets = fingerprints
}
criterion_main!(benches);
