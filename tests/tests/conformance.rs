//! The stores that need no server keep the promises of the contract, and the suite notices a store that does not.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, State, Step, Store, StoreResult, TakeOver, Write, async_trait,
};
use idempotent_runtime::stores::{Clock, MemoryStore};
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::testing::conformance::{self, Subject};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_by_a_manual_clock() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    conformance::run(Subject::new(store).clock(clock)).await;
}

#[tokio::test(start_paused = true)]
async fn memory_by_a_paused_clock() {
    conformance::run(MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_by_real_time() {
    conformance::run(MemoryStore::new()).await;
}

/// What a store may get wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    CompleteByAnybody,
    ReleaseByAnybody,
    RenewalIsAlwaysApplied,
    ReserveIsNotRepeatable,
    CompleteIsNotRepeatable,
    TakesOverOtherArguments,
    ForgetsMarks,
    KeepsWholeSeconds,
    LosesSteps,
    KeepsTheTokenWhenResolved,
    CountsFromTheReservation,
    FoldsCase,
    SettlesInTheNameOfWhoAsks,
}

/// The memory store with a bug.
#[derive(Debug)]
struct Buggy {
    store: MemoryStore,
    clock: ManualClock,
    bug: Bug,
    settled_by: Mutex<HashSet<OwnerToken>>,
}

impl Buggy {
    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn key(&self, key: &RecordKey) -> RecordKey {
        if self.has(Bug::FoldsCase) {
            return RecordKey::new(key.operation().clone(), key.as_str().to_lowercase());
        }
        key.clone()
    }

    /// The token that is really in place, for a bug that does not care whose it is.
    async fn anybody(&self, bug: Bug, key: &RecordKey, owner: OwnerToken) -> OwnerToken {
        let record = self.store.load(key).await.unwrap().filter(|_| self.has(bug));
        record.map_or(owner, |record| record.owner)
    }
}

#[async_trait]
impl Store for Buggy {
    fn name(&self) -> &'static str {
        "buggy"
    }
    async fn reserve(&self, mut request: Reserve<'_>) -> StoreResult<Reserved> {
        let key = self.key(request.key);
        request.key = &key;
        if self.has(Bug::ReserveIsNotRepeatable)
            && let Some(record) = self.store.load(&key).await?
            && record.owner == request.owner
        {
            return Ok(Reserved::Held(record));
        }
        if self.has(Bug::TakesOverOtherArguments)
            && let Some(record) = self.store.load(&key).await?
        {
            request.fingerprint = record.fingerprint;
        }
        if self.has(Bug::ForgetsMarks) && request.take_over == TakeOver::BeforeEffects {
            request.take_over = TakeOver::Always;
        }
        let reserved = self.store.reserve(request).await?;
        if let Reserved::Held(record) = &reserved
            && self.has(Bug::SettlesInTheNameOfWhoAsks)
            && record.owner == OwnerToken::NOBODY
        {
            self.settled_by.lock().unwrap().insert(request.owner);
        }
        Ok(reserved)
    }
    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let write = self.store.renew(&self.key(key), owner, lease).await?;
        Ok(if self.has(Bug::RenewalIsAlwaysApplied) { Write::Applied } else { write })
    }
    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.store.begin_effects(&self.key(key), owner, lease).await
    }
    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        mut keep: Duration,
    ) -> StoreResult<Write> {
        if self.settled_by.lock().unwrap().contains(&owner) {
            return Ok(Write::Applied);
        }
        let key = &self.key(key);
        let owner = self.anybody(Bug::CompleteByAnybody, key, owner).await;
        let record = self.store.load(key).await?;
        if self.has(Bug::CompleteIsNotRepeatable)
            && record.as_ref().is_some_and(|record| matches!(record.state, State::Settled(_)))
        {
            return Ok(Write::Lost);
        }
        if self.has(Bug::KeepsWholeSeconds) {
            keep = Duration::from_secs(keep.as_secs() + 1);
        }
        if self.has(Bug::CountsFromTheReservation)
            && let Some(record) = &record
            && let Ok(age) = (UNIX_EPOCH + self.clock.now()).duration_since(record.created_at)
        {
            keep = keep.saturating_sub(age);
        }
        self.store.complete(key, owner, settled, keep).await
    }
    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let key = &self.key(key);
        let owner = self.anybody(Bug::ReleaseByAnybody, key, owner).await;
        self.store.release(key, owner, how).await
    }
    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        if self.has(Bug::LosesSteps) {
            return Ok(PutStep::Stored);
        }
        self.store.put_step(&self.key(key), owner, step, lease).await
    }
    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.store.load(&self.key(key)).await
    }
    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let replacement = if self.has(Bug::KeepsTheTokenWhenResolved) { seen } else { replacement };
        self.store.resolve(&self.key(key), seen, replacement, resolution).await
    }
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        self.store.forget(&self.key(key), seen).await
    }
    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.store.list(query).await
    }
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.store.purge(limit).await
    }
}

#[tokio::test]
async fn suite_notices_every_bug() {
    use Bug::*;
    let bugs = [
        CompleteByAnybody,
        ReleaseByAnybody,
        RenewalIsAlwaysApplied,
        ReserveIsNotRepeatable,
        CompleteIsNotRepeatable,
        TakesOverOtherArguments,
        ForgetsMarks,
        KeepsWholeSeconds,
        LosesSteps,
        KeepsTheTokenWhenResolved,
        CountsFromTheReservation,
        FoldsCase,
        SettlesInTheNameOfWhoAsks,
    ];
    for bug in bugs {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let subject = Subject::new(Buggy { store, clock: clock.clone(), bug, settled_by: Mutex::default() })
            .clock(clock);
        let report = conformance::report(subject).await;
        assert!(!report.failed.is_empty(), "{bug:?} went unnoticed");
    }
}

#[tokio::test]
async fn checks_can_be_left_out_and_are_named() {
    let report =
        conformance::report(Subject::new(MemoryStore::new()).skip("", "only to see that it is said")).await;
    assert!(report.passed.is_empty() && report.failed.is_empty());
    let skipped: Vec<_> = report.skipped.iter().map(|(name, _)| *name).collect();
    assert_eq!(skipped, conformance::names().collect::<Vec<_>>());
}
