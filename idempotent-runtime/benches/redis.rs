//! The Redis store against bare commands on the same kind of connection: how many times as long it takes.
//!
//! `IDEMPOTENT_BENCH_REDIS` is the URL of a server of no importance: what is in the database is deleted.

#![expect(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Reserved, Settled, Store, Stored, TakeOver};
use idempotent_runtime::stores::RedisStore;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use support::{Ratio, compare_in_turns};

#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod support;

const CALLERS: u64 = 64;
/// What a caller does in one turn.
const EACH: u64 = 64;
const TURN: u64 = CALLERS * EACH;
const RESULT: [u8; 300] = [b'x'; 300];

struct Bench {
    runtime: Runtime,
    bare: MultiplexedConnection,
    store: RedisStore,
}

impl Bench {
    fn new() -> Option<Self> {
        let Ok(url) = std::env::var("IDEMPOTENT_BENCH_REDIS") else {
            println!("redis: skipped, since IDEMPOTENT_BENCH_REDIS names no server");
            return None;
        };
        let runtime = Runtime::new().unwrap();
        let connect = async {
            let client = redis::Client::open(url.as_str()).unwrap();
            let bare = client.get_multiplexed_async_connection().await.unwrap();
            let ours = client.get_multiplexed_async_connection().await.unwrap();
            (bare, RedisStore::from_connection(ours).open().await.unwrap())
        };
        let (bare, store) = runtime.block_on(connect);
        let bench = Self { runtime, bare, store };
        bench.clear();
        Some(bench)
    }

    fn clear(&self) {
        let mut bare = self.bare.clone();
        self.runtime.block_on(async { redis::cmd("FLUSHDB").exec_async(&mut bare).await.unwrap() });
    }

    /// Lets all callers do something at the same time, each with numbers of its own.
    fn together<F>(&self, call: impl Fn(u64) -> F + Clone + Send + 'static) -> Duration
    where
        F: Future<Output = ()> + Send,
    {
        self.runtime.block_on(async {
            let started = Instant::now();
            let mut callers = JoinSet::new();
            for caller in 0..CALLERS {
                let call = call.clone();
                callers.spawn(async move {
                    for n in caller * EACH..(caller + 1) * EACH {
                        call(n).await;
                    }
                });
            }
            callers.join_all().await;
            started.elapsed()
        })
    }

    /// First calls of these keys, by the store.
    fn first_calls(&self, round: u64) -> Duration {
        let store = self.store.clone();
        self.together(move |n| {
            let (store, key, owner) = (store.clone(), key(round, n), OwnerToken::random());
            async move {
                assert!(matches!(store.reserve(request(&key, owner)).await.unwrap(), Reserved::Granted(_)));
                let result = Settled::Completed(Stored { version: 1, bytes: RESULT.as_slice().into() });
                store.complete(&key, owner, &result, Duration::from_secs(600)).await.unwrap();
            }
        })
    }

    fn replays(&self, round: u64) -> Duration {
        let store = self.store.clone();
        self.together(move |n| {
            let (store, key) = (store.clone(), key(round, n));
            async move {
                let reserved = store.reserve(request(&key, OwnerToken::random())).await.unwrap();
                assert!(matches!(reserved, Reserved::Held(_)));
            }
        })
    }

    /// `SET … NX GET PX` and then `SET … PX`.
    fn bare_calls(&self, round: u64) -> Duration {
        let bare = self.bare.clone();
        self.together(move |n| {
            let (mut bare, key) = (bare.clone(), bare_key(round, n));
            async move {
                let mut reserve = redis::cmd("SET");
                reserve.arg(&key).arg(&RESULT[..100]).arg("NX").arg("GET").arg("PX").arg(60_000);
                assert!(reserve.query_async::<Option<Vec<u8>>>(&mut bare).await.unwrap().is_none());
                let mut complete = redis::cmd("SET");
                complete.arg(&key).arg(&RESULT[..]).arg("PX").arg(600_000);
                complete.exec_async(&mut bare).await.unwrap();
            }
        })
    }

    fn bare_reads(&self, round: u64) -> Duration {
        let bare = self.bare.clone();
        self.together(move |n| {
            let (mut bare, key) = (bare.clone(), bare_key(round, n));
            async move {
                let result: Vec<u8> = redis::cmd("GET").arg(&key).query_async(&mut bare).await.unwrap();
                assert_eq!(result.len(), RESULT.len());
            }
        })
    }
}

fn key(round: u64, n: u64) -> RecordKey {
    RecordKey::new("shop::charge", format!("shop/charge/018f3c5e-7b1a-7c3d-{round:04x}-{n:012x}"))
}

fn bare_key(round: u64, n: u64) -> String {
    format!("idempotent:shop/charge/by-hand-7b1a-7c3d-{round:04x}-{n:012x}")
}

fn request(key: &RecordKey, owner: OwnerToken) -> Reserve<'_> {
    Reserve {
        key,
        owner,
        fingerprint: Fingerprint::from_parts(1, [7; 32]),
        lease: Lease { duration: Duration::from_secs(30), unknown_ttl: Duration::from_secs(30 * 24 * 3600) },
        take_over: TakeOver::BeforeEffects,
        max_attempts: 10,
    }
}

fn redis(c: &mut Criterion<Ratio>) {
    let Some(bench) = Bench::new() else { return };
    let (mut ours, mut theirs) = (0, 0);
    compare_in_turns(
        c,
        "first calls, 64 callers",
        TURN,
        ("the store", &mut |_| {
            bench.clear();
            ours += 1;
            bench.first_calls(ours)
        }),
        &mut [("SET NX GET, SET", &mut |_| {
            bench.clear();
            theirs += 1;
            bench.bare_calls(theirs)
        })],
    );
    bench.clear();
    bench.first_calls(0);
    bench.bare_calls(0);
    let ours: (&str, &mut dyn FnMut(u64) -> Duration) = ("the store", &mut |_| bench.replays(0));
    compare_in_turns(c, "replays, 64 callers", TURN, ours, &mut [("GET", &mut |_| bench.bare_reads(0))]);
}

criterion_group! {
    name = benches;
    config = support::criterion(20, Duration::from_secs(8));
    targets = redis
}
criterion_main!(benches);
