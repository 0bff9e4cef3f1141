//! The calls of the traffic: what each kind does, and where in it a process may die.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idempotent_runtime::store::Store;
use idempotent_runtime::{Attempt, Error, Idempotency, OnCrash, Outcome, Reconciled, with_outcome};

use crate::ledger::{Ledger, What};
use crate::modes::Mode;
use crate::points::{Point, at};

/// How long the dead are waited for.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// What is asked about the dead must be true, so that they must be dead.
const LONG_LEASE: Duration = Duration::from_secs(600);

/// One process, as its calls see it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) idempotency: Idempotency,
    pub(crate) ledger: Ledger,
    pub(crate) number: u32,
    made: AtomicU32,
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The body said that nothing happened.
    NotDone,
    /// From the library: its code.
    Library(&'static str),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Library(error.code())
    }
}

type Given = Result<String, Trouble>;

impl Process {
    pub(crate) fn new(store: impl Store, ledger: &Path, number: u32) -> Arc<Self> {
        let builder = Idempotency::builder().store(store).namespace("dying").lease(LEASE).max_attempts(1000);
        let idempotency = builder.wait(Duration::from_secs(120)).build().unwrap();
        Arc::new(Self { idempotency, ledger: Ledger::open(ledger), number, made: AtomicU32::new(0) })
    }

    /// Makes one call, and writes down what it gave.
    pub(crate) async fn call(&self, key: &str) -> Given {
        let (given, outcome) = with_outcome(self.call_of_its_kind(key)).await;
        if let (Ok(value), Some(outcome)) = (&given, outcome) {
            at(Point::Replied, key);
            let outcome = match outcome {
                Outcome::Unrecorded(_) => "Unrecorded".into(),
                recorded => format!("{recorded:?}"),
            };
            self.ledger.write(What::Given, key, &outcome, value);
        }
        given
    }

    /// Makes one call.
    pub(crate) async fn call_of_its_kind(&self, key: &str) -> Given {
        let operation = self.idempotency.operation("work");
        match Mode::of(key) {
            Mode::Refuse => operation.key(key).run(async |_| Ok(self.plain(key))).await,
            Mode::Retry => {
                operation.on_crash(OnCrash::Retry).key(key).run(async |_| Ok(self.plain(key))).await
            }
            Mode::Marked => {
                let operation = operation.on_crash(OnCrash::RetryBeforeEffects);
                operation.key(key).run(|attempt| self.marked(key, attempt)).await
            }
            Mode::Steps => operation.key(key).run(|attempt| self.two_steps(key, attempt)).await,
            Mode::Resteps => {
                let operation = operation.on_crash(OnCrash::Retry);
                operation.key(key).run(|attempt| self.two_steps(key, attempt)).await
            }
            Mode::Asked => {
                // Nobody waits for the dead as long as that.
                let call = operation.lease(LONG_LEASE).wait(LEASE / 20).key(key);
                call.reconcile_or_run(async || Ok(self.ask(key)), async |_| Ok(self.plain(key))).await
            }
            Mode::Failing => operation.key(key).run(async |_| self.failing(key)).await,
            Mode::Slow => operation.key(key).run(|_| self.slow(key)).await,
            Mode::SlowRetry => operation.on_crash(OnCrash::Retry).key(key).run(|_| self.slow(key)).await,
        }
    }

    /// A call of an attempt that is dropped in its body, before its effect or after it.
    pub(crate) async fn call_and_go_away(&self, key: &str) {
        let acts = rand::random();
        let body = |_| async move {
            if acts {
                self.act(key, "effect");
            }
            std::future::pending().await
        };
        let call = self.idempotency.operation("work").lease(LONG_LEASE).key(key);
        let call = call.reconcile_or_run::<Given, _, _, _, _>(async || Ok(self.ask(key)), body);
        let _ = tokio::time::timeout(Duration::from_millis(20), call).await;
    }

    /// Has an effect in the world, which nobody takes back.
    pub(crate) fn act(&self, key: &str, name: &str) -> String {
        let value = format!("{}.{}", self.number, self.made.fetch_add(1, Ordering::Relaxed));
        self.ledger.write(What::Ran, key, name, &value);
        value
    }

    fn plain(&self, key: &str) -> String {
        at(Point::BodyBegins, key);
        let value = self.act(key, "effect");
        at(Point::EffectDone, key);
        value
    }

    async fn marked(&self, key: &str, attempt: Attempt) -> Given {
        at(Point::BodyBegins, key);
        attempt.begin_effects().await?;
        let value = self.act(key, "effect");
        at(Point::EffectDone, key);
        Ok(value)
    }

    fn failing(&self, key: &str) -> Given {
        at(Point::BodyBegins, key);
        if rand::random() {
            return Err(Trouble::NotDone);
        }
        let value = self.act(key, "effect");
        at(Point::EffectDone, key);
        Ok(value)
    }

    async fn slow(&self, key: &str) -> Given {
        at(Point::BodyBegins, key);
        let value = self.act(key, "effect");
        tokio::time::sleep(LEASE * 2 / 3).await;
        at(Point::EffectDone, key);
        Ok(value)
    }

    async fn two_steps(&self, key: &str, attempt: Attempt) -> Given {
        let one = self.step(key, &attempt, "one").await?;
        at(Point::BetweenSteps, key);
        let two = self.step(key, &attempt, "two").await?;
        Ok(format!("{one}+{two}"))
    }

    async fn step(&self, key: &str, attempt: &Attempt, name: &str) -> Given {
        let effect = || async {
            let value = self.act(key, name);
            at(Point::StepEffectDone, key);
            Ok::<_, Trouble>(value)
        };
        let value = attempt.step(name, effect).await?;
        self.ledger.write(What::Kept, key, name, &value);
        Ok(value)
    }

    /// What the attempts before have done. It is in the ledger, if they are dead.
    fn ask(&self, key: &str) -> Reconciled<String> {
        at(Point::Asking, key);
        let entries = self.ledger.read();
        let found = entries.into_iter().find(|entry| entry.what == What::Ran && entry.key == key);
        found.map_or(Reconciled::NotDone, |entry| Reconciled::Done(entry.value))
    }
}
