//! Random histories, on which this store and the one in memory have to agree.

use std::time::Duration;

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, PutStep, Record, Release, Reserve, Reserved, Resolution, Settled,
    Step, StepState, Store, TakeOver, Write,
};
use idempotent_runtime::stores::{MemoryStore, SqliteStore, Synchronous};
use idempotent_runtime::testing::ManualClock;

use crate::support::*;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len().try_into().unwrap())).unwrap()].clone()
    }
}

/// One question to a store; the answers are compared as text.
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

/// Without the fence, of which only the order is promised.
fn show(record: Record) -> String {
    format!("{:?}", Record { fence: 0, ..record })
}

fn compared(answer: Compared) -> String {
    match answer {
        Compared::Changed => "changed".into(),
        Compared::Differs(record) => format!("differs: {:?}", record.map(|record| show(*record))),
    }
}

async fn answer(store: &dyn Store, n: u64, owner: OwnerToken, ask: &Ask) -> String {
    let key = &key(&n.to_string());
    let write = |answer: Write| format!("{answer:?}");
    match ask {
        &Ask::Reserve(fingerprint, lease, take_over, max_attempts) => {
            let request = Reserve { key, owner, fingerprint, lease, take_over, max_attempts };
            match store.reserve(request).await.unwrap() {
                Reserved::Granted(grant) => format!("granted: {} {:?}", grant.attempt, grant.steps),
                Reserved::Held(record) => show(record),
            }
        }
        &Ask::Renew(lease) => write(store.renew(key, owner, lease).await.unwrap()),
        &Ask::BeginEffects(lease) => write(store.begin_effects(key, owner, lease).await.unwrap()),
        Ask::Complete(settled, keep) => write(store.complete(key, owner, settled, *keep).await.unwrap()),
        &Ask::Release(how) => write(store.release(key, owner, how).await.unwrap()),
        Ask::PutStep(step, lease) => match store.put_step(key, owner, step, *lease).await.unwrap() {
            PutStep::Exists(bytes) => format!("exists: {bytes:?}"),
            other => format!("{other:?}"),
        },
        Ask::Resolve(replacement, resolution) => {
            compared(store.resolve(key, owner, *replacement, resolution).await.unwrap())
        }
        Ask::Forget => compared(store.forget(key, owner).await.unwrap()),
        Ask::List(query) => {
            let page = store.list(query).await.unwrap();
            let mut shown: Vec<_> = page.records.into_iter().map(show).collect();
            shown.sort();
            format!("{shown:?}")
        }
    }
}

fn ask(dice: &mut Dice, tokens: &[OwnerToken]) -> Ask {
    let spans: Vec<_> = [0, 1, 5, 60].map(Duration::from_secs).into();
    let lease = Lease { duration: dice.pick(&spans), unknown_ttl: dice.pick(&spans) };
    let settled = [completed("a"), Settled::Failed(completed("b").stored().unwrap().clone())];
    let settled = [settled.as_slice(), &[Settled::NotRetained, Settled::Unknown]].concat();
    match dice.below(14) {
        0..=4 => Ask::Reserve(
            Fingerprint::from_parts(1, [u8::from(dice.below(5) == 0); 32]),
            lease,
            dice.pick(&[TakeOver::Always, TakeOver::BeforeEffects, TakeOver::BetweenSteps]),
            dice.pick(&[1, 2, 10]),
        ),
        5 => Ask::Renew(lease),
        6 => Ask::BeginEffects(lease),
        7 => Ask::Complete(dice.pick(&settled), dice.pick(&spans)),
        8 | 9 => Ask::Release(dice.pick(&[Release::Forget, Release::Abandon, Release::Unused])),
        10 => {
            let state = dice.pick(&[StepState::Begun, StepState::Done((*b"1").into())]);
            Ask::PutStep(Step { name: dice.pick(&["x", "y"]).into(), state }, lease)
        }
        11 => {
            let done = Resolution::Done { settled: completed("by hand"), keep: dice.pick(&spans) };
            Ask::Resolve(dice.pick(tokens), dice.pick(&[done, Resolution::NotDone]))
        }
        12 => Ask::Forget,
        _ => Ask::List(ListQuery { stuck: dice.below(2) == 0, ..ListQuery::default() }),
    }
}

#[tokio::test]
async fn it_agrees_with_the_store_in_memory() {
    let folder = Folder::new();
    for seed in 0..40 {
        let clock = ManualClock::default();
        let sqlite = SqliteStore::builder(folder.path().join(format!("{seed}.db")));
        let sqlite = sqlite.synchronous(Synchronous::Normal).clock(clock.clone()).open().await.unwrap();
        let memory = MemoryStore::builder().clock(clock.clone()).build();
        let tokens: Vec<_> = (0..4).map(|n| OwnerToken::from_bytes([n; 16])).collect();
        let mut dice = Dice(seed);
        for turn in 0..250 {
            let (n, owner) = (dice.below(2), dice.pick(&tokens));
            let ask = ask(&mut dice, &tokens);
            let ours = answer(&sqlite, n, owner, &ask).await;
            let theirs = answer(&memory, n, owner, &ask).await;
            assert_eq!(ours, theirs, "seed {seed}, turn {turn}, key {n}");
            for n in 0..2 {
                let ours = sqlite.load(&key(&n.to_string())).await.unwrap().map(show);
                let theirs = memory.load(&key(&n.to_string())).await.unwrap().map(show);
                assert_eq!(ours, theirs, "key {n} after seed {seed}, turn {turn}");
            }
            match dice.below(8) {
                0 | 1 => clock.advance(Duration::from_secs(dice.below(4))),
                2 => {
                    sqlite.purge(1).await.unwrap();
                    memory.purge(10).await.unwrap();
                }
                _ => {}
            }
        }
    }
}
