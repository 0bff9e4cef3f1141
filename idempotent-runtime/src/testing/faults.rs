//! A store that fails on command.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreError, StoreErrorKind, StoreResult, Watch, Write,
};

/// The operations of a store, for [`Faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is called like the method of Store that it stands for")]
pub enum Operation {
    Reserve,
    Renew,
    BeginEffects,
    Complete,
    Release,
    PutStep,
    Load,
    Resolve,
    Forget,
    List,
    Purge,
    Watch,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The request never arrives: nothing is done, and the caller is told [`StoreErrorKind::Unavailable`].
    LoseRequest,
    /// The store does it, but the answer never arrives: the caller is told [`StoreErrorKind::Unavailable`].
    LoseReply,
    /// The store does nothing and gives this error.
    Refuse(StoreErrorKind),
    /// The request arrives late, on tokio's clock.
    DelayRequest(Duration),
    /// The store does it, and the answer arrives late, on tokio's clock.
    DelayReply(Duration),
}

/// One call that a [`Faults`] store has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What was asked.
    pub operation: Operation,
    /// Of which record; `None` for [`Operation::List`] and [`Operation::Purge`].
    pub key: Option<RecordKey>,
    /// What went wrong with it.
    pub fault: Option<Fault>,
    /// What the caller was told, as `Debug` shows it. `None`: nothing yet, or the caller went away.
    pub answer: Option<String>,
}

/// A store that passes every call on, and fails where it was told to. A clone is a handle to the same store.
///
/// A fault is planned for a certain call, for every call of an operation, or for one of many by a seed: a test that
/// makes its calls in the same order meets the same faults. Of several that apply, the one planned first wins.
///
/// ```
/// use idempotent_runtime::key::RecordKey;
/// use idempotent_runtime::store::Store;
/// use idempotent_runtime::stores::MemoryStore;
/// use idempotent_runtime::testing::{Fault, Faults, Operation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = Faults::new(MemoryStore::new()).nth(Operation::Load, 2, Fault::LoseReply);
/// let key = RecordKey::new("charge", "charge/1");
/// assert!(store.load(&key).await.is_ok());
/// assert!(store.load(&key).await.is_err());
/// assert!(store.load(&key).await.is_ok());
/// assert_eq!(store.count(Operation::Load), 3);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Faults<S> {
    inner: S,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Debug, Default)]
struct Plan {
    rules: Vec<Rule>,
    hooks: Vec<Hook>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Rule {
    /// `None`: every operation.
    operation: Option<Operation>,
    when: When,
    fault: Fault,
}

#[derive(Debug)]
enum When {
    /// When so many more calls have come; then never again.
    After(usize),
    Always,
    /// One call of so many, by the state of a generator.
    OneOf(u64, Generator),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

type Action = Arc<dyn Fn(RecordKey) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

struct Hook {
    operation: Operation,
    side: Side,
    action: Action,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("operation", &self.operation)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

/// The generator called `SplitMix64`: the same numbers from the same seed, on every machine and in every release.
#[derive(Clone, Copy, Debug)]
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Rule {
    /// Whether it applies to this call, which it counts.
    fn applies(&mut self, operation: Operation) -> bool {
        if self.operation.is_some_and(|only| only != operation) {
            return false;
        }
        match &mut self.when {
            When::After(left) => {
                let now = *left == 1;
                *left = left.saturating_sub(1);
                now
            }
            When::Always => true,
            When::OneOf(calls, generator) => generator.next().is_multiple_of((*calls).max(1)),
        }
    }
}

impl<S> Faults<S> {
    /// The store without any fault yet.
    pub fn new(inner: S) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// The store behind the faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Plans `fault` for the `n`th call of `operation` from now on; 1 is the next one.
    #[must_use]
    pub fn nth(self, operation: Operation, n: usize, fault: Fault) -> Self {
        self.plan_nth(operation, n, fault);
        self
    }

    /// Plans `fault` for every call of `operation`.
    #[must_use]
    pub fn always(self, operation: Operation, fault: Fault) -> Self {
        self.rule(Some(operation), When::Always, fault);
        self
    }

    /// Plans `fault` for one of `calls` calls of any operation, chosen by `seed`.
    #[must_use]
    pub fn one_of(self, calls: u64, seed: u64, fault: Fault) -> Self {
        self.rule(None, When::OneOf(calls, Generator(seed)), fault);
        self
    }

    /// Runs `action` before the store sees a call of `operation`; the call waits for it. An action that never ends makes
    /// a call that hangs, which a test can then drop.
    #[must_use]
    pub fn before<F>(
        self,
        operation: Operation,
        action: impl Fn(RecordKey) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.hook(operation, Side::Before, Arc::new(move |key| Box::pin(action(key))));
        self
    }

    /// Runs `action` after the store has done a call of `operation`, before the caller is told.
    #[must_use]
    pub fn after<F>(
        self,
        operation: Operation,
        action: impl Fn(RecordKey) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.hook(operation, Side::After, Arc::new(move |key| Box::pin(action(key))));
        self
    }

    /// As [`nth`](Self::nth), on a store that is already in use.
    pub fn plan_nth(&self, operation: Operation, n: usize, fault: Fault) {
        self.rule(Some(operation), When::After(n), fault);
    }

    /// As [`always`](Self::always), on a store that is already in use.
    pub fn plan_always(&self, operation: Operation, fault: Fault) {
        self.rule(Some(operation), When::Always, fault);
    }

    /// From now on every call arrives, and no action runs.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.rules.clear();
        plan.hooks.clear();
    }

    /// Every call until now, in the order of their beginning.
    pub fn history(&self) -> Vec<Call> {
        self.plan().calls.clone()
    }

    /// How many calls of `operation` there have been.
    pub fn count(&self, operation: Operation) -> usize {
        self.plan().calls.iter().filter(|call| call.operation == operation).count()
    }

    fn rule(&self, operation: Option<Operation>, when: When, fault: Fault) {
        self.plan().rules.push(Rule { operation, when, fault });
    }

    fn hook(&self, operation: Operation, side: Side, action: Action) {
        self.plan().hooks.push(Hook { operation, side, action });
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        // No foreign code runs under this lock, so what a panicking test leaves behind is whole.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the call down; its place in the history, and its fault.
    fn begin(&self, operation: Operation, key: Option<&RecordKey>) -> (usize, Option<Fault>) {
        let mut plan = self.plan();
        // Every rule counts every call, also one that another rule has already spoilt.
        let mut fault = None;
        for rule in &mut plan.rules {
            if rule.applies(operation) {
                fault = fault.or(Some(rule.fault));
            }
        }
        plan.calls.push(Call { operation, key: key.cloned(), fault, answer: None });
        (plan.calls.len() - 1, fault)
    }

    async fn act(&self, operation: Operation, side: Side, key: Option<&RecordKey>) {
        let Some(key) = key else { return };
        let is_meant = |hook: &&Hook| hook.operation == operation && hook.side == side;
        let actions: Vec<Action> =
            self.plan().hooks.iter().filter(is_meant).map(|hook| Arc::clone(&hook.action)).collect();
        for action in actions {
            action(key.clone()).await;
        }
    }
}

impl<S: Store> Faults<S> {
    async fn pass<T>(
        &self,
        operation: Operation,
        key: Option<&RecordKey>,
        show: impl Fn(&T) -> String,
        call: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<T> {
        let (place, fault) = self.begin(operation, key);
        self.act(operation, Side::Before, key).await;
        let lost = |what: &str| Err(StoreError::new(self.name(), StoreErrorKind::Unavailable, what));
        let answer = match fault {
            Some(Fault::LoseRequest) => lost("the request was lost, as planned"),
            Some(Fault::Refuse(kind)) => Err(StoreError::new(self.name(), kind, "refused, as planned")),
            Some(Fault::DelayRequest(by)) => {
                tokio::time::sleep(by).await;
                call.await
            }
            Some(Fault::LoseReply | Fault::DelayReply(_)) | None => call.await,
        };
        self.act(operation, Side::After, key).await;
        let answer = match fault {
            Some(Fault::LoseReply) => lost("the reply was lost, as planned"),
            Some(Fault::DelayReply(by)) => {
                tokio::time::sleep(by).await;
                answer
            }
            _ => answer,
        };
        let shown = match &answer {
            Ok(answer) => show(answer),
            Err(error) => error.to_string(),
        };
        if let Some(call) = self.plan().calls.get_mut(place) {
            call.answer = Some(shown);
        }
        answer
    }

    async fn of<T: fmt::Debug>(
        &self,
        operation: Operation,
        key: &RecordKey,
        call: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<T> {
        self.pass(operation, Some(key), |answer| format!("{answer:?}"), call).await
    }
}

#[async_trait]
impl<S: Store> Store for Faults<S> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn max_result_bytes(&self) -> Option<usize> {
        self.inner.max_result_bytes()
    }
    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        self.of(Operation::Reserve, request.key, self.inner.reserve(request)).await
    }
    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.of(Operation::Renew, key, self.inner.renew(key, owner, lease)).await
    }
    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.of(Operation::BeginEffects, key, self.inner.begin_effects(key, owner, lease)).await
    }
    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        self.of(Operation::Complete, key, self.inner.complete(key, owner, settled, keep)).await
    }
    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        self.of(Operation::Release, key, self.inner.release(key, owner, how)).await
    }
    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        self.of(Operation::PutStep, key, self.inner.put_step(key, owner, step, lease)).await
    }
    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.of(Operation::Load, key, self.inner.load(key)).await
    }
    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        self.of(Operation::Resolve, key, self.inner.resolve(key, seen, replacement, resolution)).await
    }
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        self.of(Operation::Forget, key, self.inner.forget(key, seen)).await
    }
    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.pass(Operation::List, None, |page| format!("{page:?}"), self.inner.list(query)).await
    }
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.pass(Operation::Purge, None, usize::to_string, self.inner.purge(limit)).await
    }
    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        let show = |watch: &Option<Watch>| watch.as_ref().map_or("None", |_| "Some").to_owned();
        self.pass(Operation::Watch, Some(key), show, self.inner.watch(key)).await
    }
}
