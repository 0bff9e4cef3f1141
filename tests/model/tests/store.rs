//! The model's store does what the store in memory does, in random histories: so the model is of this library.

use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    self, Lease, OwnerToken, PutStep, Reserve, Reserved, Step, StepState, Store, Write,
};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;
use model::{Answer, Mark, OnCrash, Op, Phase, Record, Release, Request, Setting, Settled, apply};

const LEASE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(1_000_000_000);

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u8::try_from(self.0 % sides).expect("few sides")
    }
}

fn token(call: u8) -> OwnerToken {
    OwnerToken::from_bytes([call; 16])
}

fn random_op(dice: &mut Dice, from: u8) -> Op {
    match dice.roll(9) {
        0..=2 => Op::Reserve { fingerprint: dice.roll(4) / 3 },
        3 => Op::Renew,
        4 => Op::BeginEffects,
        5 => Op::PutStep(if dice.roll(2) == 0 { Mark::Begun } else { Mark::Done }),
        6 => Op::Release([Release::Forget, Release::Unused, Release::Abandon][usize::from(dice.roll(3))]),
        _ => Op::Complete(match dice.roll(3) {
            0 => Settled::Completed(from),
            1 => Settled::Failed(from),
            _ => Settled::Unknown,
        }),
    }
}

/// What the store in memory answers, in the model's words.
async fn ask(store: &MemoryStore, key: &RecordKey, request: Request, setting: &Setting) -> String {
    let (owner, lease) = (token(request.token), Lease { duration: LEASE, unknown_ttl: LONG });
    let written = |write: store::StoreResult<Write>| match write.expect("memory answers") {
        Write::Applied => "applied".to_owned(),
        Write::Lost => "lost".to_owned(),
    };
    match request.op {
        Op::Reserve { fingerprint } => {
            let take_over = match setting.on_crash {
                OnCrash::Refuse => store::TakeOver::BetweenSteps,
                OnCrash::Retry => store::TakeOver::Always,
                OnCrash::RetryBeforeEffects => store::TakeOver::BeforeEffects,
            };
            let fingerprint = Fingerprint::from_parts(1, [fingerprint; 32]);
            let max_attempts = u32::from(setting.max_attempts);
            let request = Reserve { key, owner, fingerprint, lease, take_over, max_attempts };
            match store.reserve(request).await.expect("memory answers") {
                Reserved::Granted(grant) => format!("granted {}", grant.attempt),
                Reserved::Held(_) => "held".to_owned(),
            }
        }
        Op::Renew => written(store.renew(key, owner, lease).await),
        Op::BeginEffects => written(store.begin_effects(key, owner, lease).await),
        Op::PutStep(mark) => {
            let state = if mark == Mark::Begun { StepState::Begun } else { StepState::Done([1].into()) };
            let step = Step { name: "act".into(), state };
            match store.put_step(key, owner, &step, lease).await.expect("memory answers") {
                PutStep::Stored => "applied".to_owned(),
                PutStep::Exists(_) => "exists".to_owned(),
                PutStep::Lost => "lost".to_owned(),
            }
        }
        Op::Complete(settled) => {
            let stored = |by: u8| store::Stored { version: 1, bytes: [by].into() };
            let settled = match settled {
                Settled::Completed(by) => store::Settled::Completed(stored(by)),
                Settled::Failed(by) => store::Settled::Failed(stored(by)),
                Settled::Unknown => store::Settled::Unknown,
            };
            written(store.complete(key, owner, &settled, LONG).await)
        }
        Op::Release(how) => {
            let how = match how {
                Release::Forget => store::Release::Forget,
                Release::Unused => store::Release::Unused,
                Release::Abandon => store::Release::Abandon,
            };
            written(store.release(key, owner, how).await)
        }
    }
}

fn said(answer: Answer) -> String {
    match answer {
        Answer::Granted(record) => format!("granted {}", record.attempt),
        Answer::Held(_) => "held".to_owned(),
        Answer::Applied => "applied".to_owned(),
        Answer::Exists => "exists".to_owned(),
        Answer::Lost => "lost".to_owned(),
    }
}

fn shown(record: Option<Record>) -> String {
    record.map_or("none".to_owned(), |record| {
        let phase = match record.phase {
            Phase::Running { lease_over } => format!("over {lease_over}, effects {}", record.effects_begun),
            Phase::Settled(Settled::Completed(by)) => format!("completed [{by}]"),
            Phase::Settled(Settled::Failed(by)) => format!("failed [{by}]"),
            Phase::Settled(Settled::Unknown) => "unknown".to_owned(),
        };
        format!("{:?} {} {phase} {:?}", token(record.owner), record.attempt, record.step)
    })
}

fn shown_by(record: Option<store::Record>) -> String {
    record.map_or("none".to_owned(), |record| {
        let phase = match &record.state {
            store::State::Running { effects_begun, .. } => {
                format!("over {}, effects {effects_begun}", record.state.is_abandoned())
            }
            store::State::Settled(settled) => match settled.stored() {
                Some(stored) => format!("{} {:?}", settled.name(), &stored.bytes[..]),
                None => settled.name().to_string(),
            },
        };
        let step = match record.steps.first().map(|step| &step.state) {
            None => Mark::Absent,
            Some(StepState::Begun) => Mark::Begun,
            Some(StepState::Done(_)) => Mark::Done,
        };
        format!("{:?} {} {phase} {step:?}", record.owner, record.attempt)
    })
}

#[tokio::test]
async fn the_models_store_is_the_store_in_memory() {
    for seed in 1..=3_000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let on_crash =
            [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects][usize::from(dice.roll(3))];
        let setting = Setting { on_crash, max_attempts: 3, ..Setting::default() };
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let key = RecordKey::new("charge", "charge/1");
        let (mut record, mut history) = (None::<Record>, Vec::new());
        for _ in 0..30 {
            if dice.roll(4) == 0 {
                clock.advance(LEASE);
                if let Some(Record { phase: Phase::Running { lease_over }, .. }) = &mut record {
                    *lease_over = true;
                }
            }
            let from = dice.roll(3) + 1;
            let request = Request { from, token: from, op: random_op(&mut dice, from) };
            history.push(request);
            let answer = said(apply(&mut record, request, &setting));
            assert_eq!(answer, ask(&store, &key, request, &setting).await, "seed {seed}: {history:#?}");
            let kept = store.load(&key).await.expect("memory answers");
            assert_eq!(shown(record), shown_by(kept), "seed {seed}: {history:#?}");
        }
    }
}
