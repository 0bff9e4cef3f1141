//! Processes that stand still for longer than their lease, and wake up when another one has their key.

use std::thread;

use idempotent_runtime::store::{Settled, State};
use idempotent_runtime::{Attempt, OnCrash, Outcome, stores, with_outcome};
use tokio::sync::{Notify, oneshot};

use crate::bodies::{Process, Trouble};
use crate::ledger::What;
use crate::modes::Mode;
use crate::places::{Kind, Place};
use crate::points::Point;
use crate::worker::{Task, Worker, listen, say};

const OWN_VALUE: &str = "its own value, which is not recorded";
const REPLAY: &str = "the other one's value, as a replay";

/// Where it stands still, in what kind of call, and what its caller is given when it wakes up.
const STOPS: [(Point, Mode, &str); 9] = [
    (Point::BodyBegins, Mode::Retry, OWN_VALUE),
    (Point::EffectDone, Mode::Retry, OWN_VALUE),
    (Point::BeforeComplete, Mode::Retry, OWN_VALUE),
    (Point::BeforeRenew, Mode::SlowRetry, OWN_VALUE),
    (Point::BeforeMark, Mode::Marked, "lease-lost"),
    (Point::StepEffectDone, Mode::Resteps, "lease-lost"),
    (Point::BeforeStepDone, Mode::Resteps, "lease-lost"),
    (Point::BeforeRelease, Mode::Failing, "not-done"),
    (Point::BeforeAbandon, Mode::Asked, "gone"),
];

/// When the zombie wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakes {
    /// The other process has the key, and is at work.
    Meanwhile,
    /// The other process has recorded its result.
    Afterwards,
}

#[test]
fn a_zombie_changes_nothing_in_sqlite() {
    wake_zombies(Kind::Sqlite);
}

#[test]
fn a_zombie_changes_nothing_in_postgres() {
    wake_zombies(Kind::Postgres);
}

#[test]
fn a_zombie_changes_nothing_in_redis() {
    wake_zombies(Kind::Redis);
}

fn wake_zombies(kind: Kind) {
    let place = Place::new(kind);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = runtime.block_on(stores::open(&place.url)).unwrap();
    thread::scope(|scope| {
        let mut number = 0;
        for (point, mode, given) in STOPS {
            for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
                number += 1;
                let (place, store, runtime) = (&place, &store, &runtime);
                scope.spawn(move || {
                    let mut zombie = Zombie::stopped(place, number, point, mode);
                    let process = Process::new(store.clone(), &place.ledger(), 0);
                    runtime.block_on(zombie.wake(&process, wakes, given));
                });
            }
        }
        let (place, store, runtime) = (&place, &store, &runtime);
        scope.spawn(move || {
            // The answer to its reservation comes so late that it asks again.
            let mut zombie = Zombie::stopped(place, 0, Point::AfterReserve, Mode::Retry);
            let process = Process::new(store.clone(), &place.ledger(), 0);
            runtime.block_on(zombie.wake(&process, Wakes::Afterwards, REPLAY));
        });
    });
}

/// A process that stands still, with a key that is not its own for long.
#[derive(Debug)]
struct Zombie {
    worker: Worker,
    point: Point,
    key: String,
}

impl Zombie {
    fn stopped(place: &Place, number: u32, point: Point, mode: Mode) -> Self {
        let mut worker = Worker::start(
            place,
            Task { role: "zombie", number: number + 1, trap: Some(("STOP", point, mode, 1)) },
        );
        let key = mode.key(number + 1, 0);
        worker.tell(&key);
        worker.stand_still();
        Self { worker, point, key }
    }

    /// Lets another process take over, and the zombie wake up.
    async fn wake(&mut self, process: &Process, wakes: Wakes, expected: &str) {
        let case = format!("{:?}, {wakes:?}", self.point);
        let (end, ends) = oneshot::channel();
        let (say_begun, begun) = oneshot::channel();
        let key = self.key.clone();
        let taking_over = with_outcome(take_over(process, &key, say_begun, ends));
        tokio::pin!(taking_over);
        tokio::select! {
            answer = &mut taking_over => panic!("{case}: {answer:?} without a body"),
            value = begun => { value.unwrap(); }
        }
        let (said, second) = if wakes == Wakes::Meanwhile {
            let said = self.wake_up();
            let state = self.state(process).await;
            let is_at_work = matches!(&state, State::Running { lease_left, .. } if !lease_left.is_zero());
            assert!(is_at_work, "{case}: {state:?}");
            end.send(()).unwrap();
            (said, taking_over.await)
        } else {
            end.send(()).unwrap();
            let second = taking_over.await;
            (self.wake_up(), second)
        };
        let value = second.0.unwrap();
        assert_eq!(second.1, Some(Outcome::Executed), "{case}");
        self.judge(process, &said, &value, expected, &case).await;
    }

    /// What it says when it has woken up.
    fn wake_up(&mut self) -> String {
        self.worker.go_on();
        self.worker.hear()
    }

    async fn state(&self, process: &Process) -> State {
        process.idempotency.inspect(format!("dying/work/{}", self.key)).await.unwrap().unwrap().state
    }

    async fn judge(&self, process: &Process, said: &str, value: &str, expected: &str, case: &str) {
        let acted = process
            .ledger
            .read()
            .into_iter()
            .filter(|entry| entry.what == What::Ran && entry.key == self.key);
        let acted: Vec<String> = acted.map(|entry| entry.value).filter(|made| made != value).collect();
        match expected {
            OWN_VALUE => assert_eq!(said, format!("given {} Unrecorded(LeaseLost)", acted[0]), "{case}"),
            REPLAY => {
                assert_eq!((said, &acted[..]), (&*format!("given {value} Replayed"), &[][..]), "{case}");
            }
            other => assert_eq!(said, other, "{case}"),
        }
        if self.point == Point::BeforeMark {
            assert_eq!(acted, [""; 0], "{case}: it was told in time");
        }
        let State::Settled(Settled::Completed(stored)) = self.state(process).await else { panic!("{case}") };
        assert_eq!(serde_json::from_slice::<String>(&stored.bytes).unwrap(), value, "{case}");
        let third = with_outcome(process.call_of_its_kind(&self.key)).await;
        assert_eq!(third, (Ok(value.to_owned()), Some(Outcome::Replayed)), "{case}");
    }
}

fn policy(mode: Mode) -> OnCrash {
    if mode == Mode::Marked { OnCrash::RetryBeforeEffects } else { OnCrash::Retry }
}

/// The call of the other process: it says when its body begins, and ends when it is told to.
async fn take_over(
    process: &Process,
    key: &str,
    begins: oneshot::Sender<()>,
    ends: oneshot::Receiver<()>,
) -> Result<String, Trouble> {
    let operation = process.idempotency.operation("work").on_crash(policy(Mode::of(key)));
    let body = |attempt: Attempt| async move {
        assert_eq!(attempt.number(), 2);
        let value = process.act(key, "effect");
        begins.send(()).unwrap();
        ends.await.unwrap();
        Ok(value)
    };
    operation.key(key).run(body).await
}

/// What the zombie does: one call, and it says what that gave.
pub(crate) async fn call(process: &Process) {
    let key = listen().expect("a key");
    let operation = process.idempotency.operation("work").on_crash(OnCrash::Retry).key(&key);
    let call = async {
        match Mode::of(&key) {
            Mode::Failing => operation.run(|_| async { Err(Trouble::NotDone) }).await,
            Mode::Asked => {
                let begins = Notify::new();
                let hung = operation.run(|_| {
                    begins.notify_one();
                    std::future::pending::<Result<String, Trouble>>()
                });
                tokio::select! {
                    () = begins.notified() => {}
                    answer = hung => panic!("{answer:?}"),
                }
                process.idempotency.shutdown().await;
                Err(Trouble::Library("gone"))
            }
            _ => process.call_of_its_kind(&key).await,
        }
    };
    match with_outcome(call).await {
        (Ok(value), outcome) => say(&format!("given {value} {:?}", outcome.unwrap())),
        (Err(Trouble::NotDone), _) => say("not-done"),
        (Err(Trouble::Library(code)), _) => say(code),
    }
}
