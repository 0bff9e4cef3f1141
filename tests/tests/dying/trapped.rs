//! A store on whose way out and back there are points.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, StepState, Store, StoreResult, TakeOver, Watch, Write, async_trait,
};

use crate::points::{Point, at, soon_after};

/// Passes everything on.
#[derive(Debug)]
pub(crate) struct Trapped {
    store: Arc<dyn Store>,
    careless: bool,
}

impl Trapped {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, careless: false }
    }

    /// One that gives the keys of the dead away, whatever they may have done, as no store should.
    pub(crate) fn careless(store: Arc<dyn Store>) -> Self {
        Self { store, careless: true }
    }
}

/// The part of a key that the traffic made.
pub(crate) fn name(key: &RecordKey) -> &str {
    key.as_str().rsplit('/').next().unwrap()
}

fn before(key: &RecordKey, here: Point, under_way: Point) {
    at(here, name(key));
    soon_after(under_way, name(key));
}

fn after(key: &RecordKey, here: Point, answer: StoreResult<Write>) -> StoreResult<Write> {
    if matches!(answer, Ok(Write::Applied)) {
        at(here, name(key));
    }
    answer
}

#[async_trait]
impl Store for Trapped {
    fn name(&self) -> &'static str {
        self.store.name()
    }
    fn max_result_bytes(&self) -> Option<usize> {
        self.store.max_result_bytes()
    }
    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        before(request.key, Point::BeforeReserve, Point::InReserve);
        let take_over = if self.careless { TakeOver::Always } else { request.take_over };
        let request = Reserve { take_over, ..request };
        let answer = self.store.reserve(request).await;
        if matches!(answer, Ok(Reserved::Granted(_))) {
            at(Point::AfterReserve, name(request.key));
        }
        answer
    }
    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        before(key, Point::BeforeRenew, Point::InRenew);
        after(key, Point::AfterRenew, self.store.renew(key, owner, lease).await)
    }
    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        before(key, Point::BeforeMark, Point::InMark);
        after(key, Point::AfterMark, self.store.begin_effects(key, owner, lease).await)
    }
    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        before(key, Point::BeforeComplete, Point::InComplete);
        after(key, Point::AfterComplete, self.store.complete(key, owner, settled, keep).await)
    }
    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        if how == Release::Abandon {
            at(Point::BeforeAbandon, name(key));
        }
        let given_back = how == Release::Forget;
        if given_back {
            before(key, Point::BeforeRelease, Point::InRelease);
        }
        let answer = self.store.release(key, owner, how).await;
        if given_back { after(key, Point::AfterRelease, answer) } else { answer }
    }
    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        let (here, under_way, there) = match step.state {
            StepState::Begun => (Point::BeforeStepBegun, Point::InStepBegun, Point::AfterStepBegun),
            StepState::Done(_) => (Point::BeforeStepDone, Point::InStepDone, Point::AfterStepDone),
        };
        before(key, here, under_way);
        let answer = self.store.put_step(key, owner, step, lease).await;
        if matches!(answer, Ok(PutStep::Stored)) {
            at(there, name(key));
        }
        answer
    }
    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.store.load(key).await
    }
    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        self.store.resolve(key, seen, replacement, resolution).await
    }
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        self.store.forget(key, seen).await
    }
    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.store.list(query).await
    }
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.store.purge(limit).await
    }
    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        at(Point::Waiting, name(key));
        self.store.watch(key).await
    }
}
