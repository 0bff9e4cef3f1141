//! Processes that call, crash and come back, and an operator who looks after them.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{Compared, ListQuery, OwnerToken, Resolution, Settled, State, Store, Stored};
use idempotent_runtime::stores::{Clock, MemoryStore};
use idempotent_runtime::testing::seed_this_thread;
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, OnError, Outcome, Unrecorded, with_outcome};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::ledger::{Body, World};
use crate::mutant::{Mutant, Mutation};
use crate::network::Network;

const LEASE: Duration = Duration::from_millis(400);
const HOUR: Duration = Duration::from_secs(3600);

/// The result of a call: who made it, and for which amount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Receipt {
    by: u64,
    amount: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Failure {
    Own(Receipt),
    Library(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error.code().to_owned())
    }
}

/// The store's clock: it follows tokio's, and jumps.
#[derive(Clone, Debug)]
struct JumpingClock {
    begun: Instant,
    ahead: Arc<AtomicI64>,
}

impl Clock for JumpingClock {
    fn now(&self) -> Duration {
        let base = Duration::from_secs(1_767_225_600) + self.begun.elapsed();
        let ahead = self.ahead.load(Ordering::Relaxed);
        let by = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { base - by } else { base + by }
    }
}

struct Process {
    idempotency: Idempotency,
    cut: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
}

/// What came of one seed.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub violations: Vec<String>,
    pub history: Vec<String>,
}

/// Runs one seed from its beginning to its end.
pub fn simulate(seed: u64, mutation: Option<Mutation>) -> Report {
    seed_this_thread(Some(seed));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (violations, history) = runtime.block_on(async {
        let world = Arc::new(World::new(seed));
        traffic(&world, mutation).await;
        world.report()
    });
    drop(runtime);
    seed_this_thread(None);
    Report { violations, history }
}

async fn traffic(world: &Arc<World>, mutation: Option<Mutation>) {
    let ahead = Arc::new(AtomicI64::new(0));
    let clock = JumpingClock { begun: Instant::now(), ahead: Arc::clone(&ahead) };
    let store = Mutant::new(MemoryStore::builder().clock(clock).build(), mutation);
    let mut processes: Vec<Process> = (0..3).map(|number| start(world, &store, number)).collect();
    for round in 0..10_u64 {
        sleep(Duration::from_millis(100 + world.roll(400))).await;
        if world.roll(4) == 0 {
            let by = i64::try_from(world.roll(1500)).unwrap() - 500;
            world.note(|| format!("== the clock jumps by {by} ms"));
            ahead.fetch_add(by, Ordering::Relaxed);
        }
        if world.roll(6) == 0 {
            let victim = usize::try_from(world.roll(3)).unwrap();
            world.note(|| format!("== process {victim} crashes"));
            let process = &mut processes[victim];
            process.cut.store(true, Ordering::Relaxed);
            process.callers.iter().for_each(JoinHandle::abort);
            *process = start(world, &store, 10 + round);
        }
        if world.roll(5) == 0 {
            operate(world, &store).await;
        }
        if world.roll(8) == 0 {
            store.purge(10).await.unwrap();
        }
    }
    world.heal();
    for process in &mut processes {
        for caller in process.callers.drain(..) {
            if timeout(HOUR, caller).await.is_err() {
                world.violation("a call waits for ever".to_owned());
            }
        }
        process.idempotency.shutdown().await;
    }
    sleep(Duration::from_secs(60)).await;
    let probe = start_with(world, &store, 99, 0);
    for key in ["a", "b"] {
        last_call(world, &store, &probe.idempotency, key).await;
    }
}

fn start(world: &Arc<World>, store: &Mutant, number: u64) -> Process {
    // tokio wakes the waiters of one process in an order of its own, which no seed decides. So there is one at most.
    start_with(world, store, number, if world.plan.waits { 1 } else { 2 })
}

fn start_with(world: &Arc<World>, store: &Mutant, number: u64, callers: u64) -> Process {
    let cut = Arc::new(AtomicBool::new(false));
    let network =
        Network { store: store.clone(), world: Arc::clone(world), process: number, cut: Arc::clone(&cut) };
    let ttl = if world.plan.short_ttl { Duration::from_millis(700) } else { 24 * HOUR };
    let mut builder = Idempotency::builder()
        .store(network)
        .lease(LEASE)
        .ttl(ttl)
        .max_attempts(1000)
        .max_run(Duration::from_secs(20))
        .store_timeout(Duration::from_secs(1))
        .record_patience(Duration::from_secs(5));
    if world.plan.waits {
        builder = builder.wait(Duration::from_secs(2));
    }
    let idempotency = builder.build().unwrap();
    let handles = (0..callers)
        .map(|_| {
            let (world, idempotency, store) = (Arc::clone(world), idempotency.clone(), store.store.clone());
            tokio::spawn(async move {
                for _ in 0..(6 / callers) {
                    sleep(Duration::from_millis(world.roll(300))).await;
                    let key = if world.roll(3) == 0 { "b" } else { "a" };
                    let amount = if world.roll(8) == 0 { 2 } else { 1 };
                    let patience =
                        if world.mishap(4) { Duration::from_millis(world.roll(800)) } else { HOUR };
                    let call = call(&world, &store, &idempotency, key, amount);
                    if timeout(patience, call).await.is_err() {
                        world.note(|| format!("{key}: a call is dropped"));
                    }
                }
            })
        })
        .collect();
    Process { idempotency, cut, callers: handles }
}

/// Makes a call, and compares what the caller is told with what is so.
async fn call(
    world: &Arc<World>,
    store: &MemoryStore,
    idempotency: &Idempotency,
    key: &str,
    amount: u64,
) -> Result<Receipt, Failure> {
    let by = world.new_call();
    let policy = world.plan.on_error;
    let replays = policy == OnError::Replay;
    let operation =
        idempotency.operation("charge").on_crash(world.plan.on_crash).on_error(move |_: &Failure| policy);
    let kept_under = operation.key(key).record_key().unwrap();
    let own: Arc<Mutex<Option<Result<Receipt, Failure>>>> = Arc::default();
    world.note(|| format!("{key}: call {by} of {amount}"));
    let body = {
        let (own, world, key, idempotency) =
            (Arc::clone(&own), Arc::clone(world), key.to_owned(), idempotency.clone());
        move |attempt: Attempt| async move {
            world.body_starts(&key, by);
            let mut acted = false;
            let answer = work(&world, &idempotency, &attempt, &key, Receipt { by, amount }, &mut acted).await;
            let is_library = matches!(answer, Err(Failure::Library(_)));
            let releases = policy == OnError::Retry || (replays && is_library);
            let nothing = answer.is_err() && !acted && releases;
            let stored = answer.is_ok() || (replays && !is_library);
            world.answers(&key, by, &format!("{answer:?}"), nothing, stored);
            *own.lock().unwrap() = Some(answer.clone());
            answer
        }
    };
    let (result, outcome) = with_outcome(operation.key(key).fingerprint(&amount).run(body)).await;
    world.note(|| format!("{key}: call {by} is told {result:?} {outcome:?}"));
    let own = own.lock().unwrap().take();
    judge(world, store, &kept_under, key, &Told { by, amount, own, result: result.clone(), outcome }).await;
    result
}

struct Told {
    by: u64,
    amount: u64,
    own: Option<Result<Receipt, Failure>>,
    result: Result<Receipt, Failure>,
    outcome: Option<Outcome>,
}

async fn judge(world: &World, store: &MemoryStore, kept_under: &RecordKey, key: &str, told: &Told) {
    let Told { by, amount, own, result, outcome } = told;
    if let Some(own) = own
        && own != result
    {
        world.violation(format!("{key}: call {by} made {own:?} and was told {result:?}"));
    }
    // The operator's receipt is for whatever it was.
    if let Ok(Receipt { by: made_by, amount: of }) | Err(Failure::Own(Receipt { by: made_by, amount: of })) =
        result
        && of != amount
        && *made_by != 0
    {
        world.violation(format!("{key}: call {by} of {amount} was given {result:?}"));
    }
    let is_kept = match result {
        Ok(_) => true,
        Err(Failure::Own(_)) => world.plan.on_error == OnError::Replay,
        Err(Failure::Library(_)) => false,
    };
    if !is_kept || world.plan.short_ttl {
        return;
    }
    let record = store.load(kept_under).await.unwrap();
    let bytes = match result {
        Ok(receipt) => serde_json::to_vec(receipt),
        Err(failure) => serde_json::to_vec(failure),
    };
    let is_stored = record.is_some_and(|record| match &record.state {
        State::Settled(settled) => settled.stored().is_some_and(|stored| *stored.bytes == *bytes.unwrap()),
        State::Running { .. } => false,
    });
    match outcome {
        Some(Outcome::Executed | Outcome::Replayed) => {
            if !is_stored {
                world.violation(format!("{key}: call {by} is told {outcome:?}, and that is not stored"));
            }
            world.given(key, *by, &format!("{result:?}"));
        }
        Some(Outcome::Unrecorded(Unrecorded::LeaseLost)) if is_stored => {
            world.violation(format!("{key}: call {by} is told of a lost lease, and its result is stored"));
        }
        Some(_) => {}
        None => world.violation(format!("{key}: call {by} has no outcome")),
    }
}

async fn work(
    world: &Arc<World>,
    idempotency: &Idempotency,
    attempt: &Attempt,
    key: &str,
    receipt: Receipt,
    acted: &mut bool,
) -> Result<Receipt, Failure> {
    let by = receipt.by;
    sleep(Duration::from_millis(world.roll(300))).await;
    if world.plan.nested {
        let part = idempotency.operation("reserve-stock").on_crash(OnCrash::Retry);
        let inner: Result<u64, Error> = part.key(key).run(|_| async { Ok(7) }).await;
        if inner.as_ref().is_ok_and(|value| *value != 7) {
            world.violation(format!("{key}: the call inside {by} gave {inner:?}"));
        }
        let again =
            idempotency.operation("charge").key(key).run(|_| async { Ok::<_, Error>(receipt.clone()) });
        if again.await.err().map(|error| error.code()) != Some("reentrant") {
            world.violation(format!("{key}: call {by} could call itself"));
        }
    }
    // Never nothing, so that the library's errors have been dealt with when the body gives its own.
    let pause = Duration::from_millis(1 + world.roll(700));
    match world.plan.body {
        Body::Plain => world.acts(key, by),
        Body::Effects => {
            attempt.begin_effects().await?;
            *acted = true;
            world.acts(key, by);
        }
        Body::Step => {
            let done: Result<u64, Failure> = attempt
                .step("act", || async {
                    world.step_runs(key, by, attempt.number());
                    sleep(pause / 2).await;
                    Ok(by)
                })
                .await;
            *acted = true;
            done?;
            world.step_is_done(key, by, attempt.number());
        }
    }
    sleep(pause).await;
    if world.roll(5) == 0 { Err(Failure::Own(receipt)) } else { Ok(receipt) }
}

/// An operator takes up a record that waits for somebody.
async fn operate(world: &World, store: &Mutant) {
    let query = ListQuery { stuck: true, operation: Some("charge".to_owned()), ..ListQuery::default() };
    let Some(record) = store.list(&query).await.unwrap().records.into_iter().next() else { return };
    let what = world.roll(3);
    if what < 2 {
        sleep(Duration::from_millis(world.roll(300))).await;
    }
    // What is forgotten is compared by its token alone: a late owner who completed meanwhile would lose its result. So this
    // operator forgets at once.
    let Some(key) = record.key.as_str().rsplit('/').next() else { return };
    let receipt = Receipt { by: 0, amount: 1 };
    let stored = Stored { version: 1, bytes: serde_json::to_vec(&receipt).unwrap().into() };
    let done = Resolution::Done { settled: Settled::Completed(stored), keep: 24 * HOUR };
    let replacement = OwnerToken::random();
    let compared = match what {
        0 => store.resolve(&record.key, record.owner, replacement, &done).await.unwrap(),
        1 => store.resolve(&record.key, record.owner, replacement, &Resolution::NotDone).await.unwrap(),
        _ => store.forget(&record.key, record.owner).await.unwrap(),
    };
    world.note(|| format!("== an operator does {what} to {key}: {compared:?}"));
    if compared == Compared::Changed {
        let given = (what == 0).then(|| format!("{:?}", Ok::<_, Failure>(receipt)));
        world.repaired(key, given);
    }
}

/// When everything is calm again, a call gets somewhere.
async fn last_call(world: &Arc<World>, store: &Mutant, idempotency: &Idempotency, key: &str) {
    let kept_under = idempotency.operation("charge").key(key).record_key().unwrap();
    let before = store.store.load(&kept_under).await.unwrap();
    let result = call(world, &store.store, idempotency, key, 1).await;
    let Err(Failure::Library(code)) = result else { return };
    let is_unknown = before.as_ref().is_some_and(|record| record.state == State::Settled(Settled::Unknown));
    let excused = match code.as_str() {
        "outcome-unknown" => is_unknown || world.plan.on_crash != OnCrash::Retry,
        "key-reused" => true,
        _ => false,
    };
    if !excused {
        world.violation(format!("{key}: the last call gets {code} from {before:?}"));
    }
}
