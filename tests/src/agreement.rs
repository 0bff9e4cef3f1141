//! Random histories, on which a store and the one in memory have to agree: the one in memory is what the contract means.

use std::time::{Duration, SystemTime};

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, PutStep, Record, Release, Reserve, Reserved, Resolution, Settled,
    State, Step, StepState, Store, Stored, TakeOver, Write,
};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;

const TURNS: u32 = 250;
const KEYS: u64 = 2;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How time passes for the two stores.
#[derive(Debug)]
pub enum Time {
    /// By this clock, which both go by: some spans end in the middle of a history.
    Manual(ManualClock),
    /// By itself: spans end at once, or not at all.
    Real,
}

/// Asks both stores the same, and compares what they answer and what they hold. `seed` names a history.
///
/// # Panics
/// When they do not agree, with the turn at which that was.
pub async fn agree(store: &dyn Store, time: &Time, seed: u64) {
    let memory = match time {
        Time::Manual(clock) => MemoryStore::builder().clock(clock.clone()).build(),
        Time::Real => MemoryStore::new(),
    };
    let operation = format!("agreement-{}", OwnerToken::random());
    let mut history = History::new(seed, time);
    for turn in 0..TURNS {
        let (key, owner) = history.whose(&operation);
        let ask = history.ask(&operation);
        let ours = answer(store, &key, owner, &ask, time).await;
        let theirs = answer(&memory, &key, owner, &ask, time).await;
        assert_eq!(ours, theirs, "seed {seed}, turn {turn}: {owner} asks {ask:?} of {key:?}");
        history.pass(time, store, &memory).await;
        for n in 0..KEYS {
            let key = key_of(&operation, n);
            let ours = store.load(&key).await.expect("it answers").map(|record| shown(record, time));
            let theirs = memory.load(&key).await.expect("it answers").map(|record| shown(record, time));
            assert_eq!(ours, theirs, "{key:?} after seed {seed}, turn {turn}: {ask:?}");
        }
    }
}

fn key_of(operation: &str, n: u64) -> RecordKey {
    RecordKey::new(operation.to_owned(), format!("{operation}/{n}"))
}

/// One question to a store; the answers are compared as text.
#[derive(Debug)]
enum Ask {
    Reserve(Fingerprint, Lease, TakeOver, u32),
    Renew(Lease),
    BeginEffects(Lease),
    Complete(Settled, Duration),
    Release(Release),
    PutStep(Step, Lease),
    Resolve(OwnerToken, Resolution),
    Forget,
    List(ListQuery),
}

struct History {
    dice: Dice,
    spans: Vec<Duration>,
    /// Of attempts.
    tokens: Vec<OwnerToken>,
    /// Of records that somebody has resolved, and nobody's.
    others: Vec<OwnerToken>,
    reserves: bool,
}

impl History {
    fn new(seed: u64, time: &Time) -> Self {
        let spans = match time {
            Time::Manual(_) => [0, 1, 5, 60].map(Duration::from_secs).into(),
            Time::Real => vec![Duration::ZERO, HOUR, 24 * HOUR, Duration::MAX],
        };
        let tokens = (1..=4).map(|n| OwnerToken::from_bytes([n; 16])).collect();
        Self { dice: Dice(seed), spans, tokens, others: vec![OwnerToken::NOBODY], reserves: false }
    }

    /// The key of the next question, and the token of the one who asks. Only attempts ask for a reservation.
    fn whose(&mut self, operation: &str) -> (RecordKey, OwnerToken) {
        self.reserves = self.dice.below(14) < 5;
        let key = key_of(operation, self.dice.below(KEYS));
        let is_attempt = self.reserves || self.dice.below(4) > 0;
        let token = if is_attempt { self.dice.pick(&self.tokens) } else { self.dice.pick(&self.others) };
        (key, token)
    }

    fn ask(&mut self, operation: &str) -> Ask {
        let dice = &mut self.dice;
        let lease = Lease { duration: dice.pick(&self.spans), unknown_ttl: dice.pick(&self.spans) };
        if self.reserves {
            let fingerprint = Fingerprint::from_parts(1, [u8::from(dice.below(5) == 0); 32]);
            let policies = [TakeOver::Always, TakeOver::BeforeEffects, TakeOver::BetweenSteps];
            return Ask::Reserve(fingerprint, lease, dice.pick(&policies), dice.pick(&[1, 2, 10]));
        }
        let stored = |text: &str| Stored { version: 1, bytes: text.as_bytes().into() };
        let settled = [
            Settled::Completed(stored("a")),
            Settled::Failed(stored("b")),
            Settled::NotRetained,
            Settled::Unknown,
        ];
        match dice.below(9) {
            0 => Ask::Renew(lease),
            1 => Ask::BeginEffects(lease),
            2 => Ask::Complete(dice.pick(&settled), dice.pick(&self.spans)),
            3 | 4 => Ask::Release(dice.pick(&[Release::Forget, Release::Abandon, Release::Unused])),
            5 => {
                let state = dice.pick(&[StepState::Begun, StepState::Done((*b"1").into())]);
                Ask::PutStep(Step { name: dice.pick(&["x", "y"]).into(), state }, lease)
            }
            6 => {
                let settled = Settled::Completed(stored("by hand"));
                let done = Resolution::Done { settled, keep: dice.pick(&self.spans) };
                let replacement = OwnerToken::random();
                self.others.push(replacement);
                Ask::Resolve(replacement, dice.pick(&[done, Resolution::NotDone]))
            }
            7 => Ask::Forget,
            _ => Ask::List(ListQuery {
                operation: Some(operation.to_owned()),
                stuck: dice.below(2) == 0,
                ..ListQuery::default()
            }),
        }
    }

    /// Lets some time pass, or those who sweep.
    async fn pass(&mut self, time: &Time, store: &dyn Store, memory: &MemoryStore) {
        match time {
            Time::Manual(clock) if self.dice.below(4) == 0 => {
                clock.advance(Duration::from_secs(self.dice.below(4)));
            }
            Time::Manual(_) => {}
            // What was to end at once has ended for every store, also for those that count milliseconds.
            Time::Real => tokio::time::sleep(Duration::from_millis(4)).await,
        }
        if self.dice.below(8) == 0 {
            store.purge(1).await.expect("it answers");
            memory.purge(10).await.expect("it answers");
        }
    }
}

async fn answer(store: &dyn Store, key: &RecordKey, owner: OwnerToken, ask: &Ask, time: &Time) -> String {
    let write = |answer: Write| format!("{answer:?}");
    let compared = |answer: Compared| match answer {
        Compared::Changed => "changed".to_owned(),
        Compared::Differs(record) => format!("differs: {:?}", record.map(|record| shown(*record, time))),
    };
    let answered = async {
        Ok::<_, idempotent_runtime::store::StoreError>(match ask {
            &Ask::Reserve(fingerprint, lease, take_over, max_attempts) => {
                let request = Reserve { key, owner, fingerprint, lease, take_over, max_attempts };
                match store.reserve(request).await? {
                    Reserved::Granted(grant) => format!("granted: {} {:?}", grant.attempt, grant.steps),
                    Reserved::Held(record) => shown(record, time),
                }
            }
            &Ask::Renew(lease) => write(store.renew(key, owner, lease).await?),
            &Ask::BeginEffects(lease) => write(store.begin_effects(key, owner, lease).await?),
            Ask::Complete(settled, keep) => write(store.complete(key, owner, settled, *keep).await?),
            &Ask::Release(how) => write(store.release(key, owner, how).await?),
            Ask::PutStep(step, lease) => match store.put_step(key, owner, step, *lease).await? {
                // Either is an answer to whoever has done the step with this result.
                PutStep::Exists(bytes) if StepState::Done(bytes.clone()) == step.state => "stored".to_owned(),
                PutStep::Stored => "stored".to_owned(),
                other => format!("{other:?}"),
            },
            Ask::Resolve(replacement, resolution) => {
                compared(store.resolve(key, owner, *replacement, resolution).await?)
            }
            Ask::Forget => compared(store.forget(key, owner).await?),
            Ask::List(query) => {
                let records = store.list(query).await?.records;
                let mut all: Vec<_> = records.into_iter().map(|record| shown(record, time)).collect();
                all.sort();
                format!("{all:?}")
            }
        })
    };
    match answered.await {
        Ok(answer) => answer,
        Err(error) => format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string)),
    }
}

/// Without the fence, of which only the order is promised; where time passes by itself, in hours.
fn shown(mut record: Record, time: &Time) -> String {
    record.fence = 0;
    if matches!(time, Time::Real) {
        record.created_at = SystemTime::UNIX_EPOCH;
        record.expires_in = in_hours(record.expires_in);
        if let State::Running { lease_left, .. } = &mut record.state {
            *lease_left = if lease_left.is_zero() { Duration::ZERO } else { in_hours(*lease_left) };
        }
    }
    format!("{record:?}")
}

/// The nearest number of hours; what is longer than a year is a year, since stores may cut what nobody lives to see.
fn in_hours(span: Duration) -> Duration {
    let year = 365 * 24 * HOUR;
    if span > year { year } else { Duration::from_secs((span + HOUR / 2).as_secs() / 3600 * 3600) }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let n = self.below(of.len().try_into().expect("a few"));
        of[usize::try_from(n).expect("a few")].clone()
    }
}
