//! The memory store with bugs of choice.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Grant, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved,
    Resolution, Settled, State, Step, StepState, Store, StoreError, StoreErrorKind, StoreResult, TakeOver,
    Watch, Write, async_trait,
};
use idempotent_runtime::stores::{Clock, MemoryStore};
use idempotent_runtime::testing::ManualClock;

/// What a store may get wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bug {
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
    LongestLeaseLeavesNothing,
    ZeroMeansForever,
    TokenOutlivesItsRecord,
    FinishedStepDoesNotRenew,
    SettledRecordTakesSteps,
    PagesByNumber,
    MixesOperations,
    ForgetsWhatIsThere,
    ForgetsTheLiving,
    ResolvesTwice,
    NobodyIsNoToken,
    CutsResultsOff,
    TooLargeIsUnavailable,
    PurgesWhatHasCome,
    SleepsThroughTheLastAttempt,
}

/// The memory store with a bug.
#[derive(Debug)]
pub(crate) struct Buggy {
    store: MemoryStore,
    clock: ManualClock,
    bug: Bug,
    settled_by: Mutex<HashSet<OwnerToken>>,
    /// Grants, as a store remembers them that does not look at what became of the record.
    granted: Mutex<Vec<(OwnerToken, RecordKey, Grant)>>,
    /// Keys of which something is remembered that should not be.
    marked: Mutex<Vec<RecordKey>>,
}

/// The limit of the stores that get that wrong.
const LIMIT: usize = 1000;

impl Buggy {
    pub(crate) fn new(store: MemoryStore, clock: ManualClock, bug: Bug) -> Self {
        let (settled_by, granted, marked) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { store, clock, bug, settled_by, granted, marked }
    }

    fn is_marked(&self, key: &RecordKey) -> bool {
        self.marked.lock().unwrap().contains(key)
    }

    fn mark(&self, bug: Bug, key: &RecordKey, so: bool) {
        if self.has(bug) && so {
            self.marked.lock().unwrap().push(key.clone());
        }
    }

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
        let remembered =
            |(owner, of, _): &&(OwnerToken, RecordKey, Grant)| *owner == request.owner && *of == key;
        if self.has(Bug::TokenOutlivesItsRecord)
            && let Some((.., grant)) = self.granted.lock().unwrap().iter().find(remembered)
        {
            return Ok(Reserved::Granted(grant.clone()));
        }
        self.mark(Bug::LongestLeaseLeavesNothing, &key, request.lease.duration == Duration::MAX);
        let reserved = self.store.reserve(request).await?;
        if let Reserved::Granted(grant) = &reserved {
            self.granted.lock().unwrap().push((request.owner, key.clone(), grant.clone()));
        }
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
        self.mark(Bug::PurgesWhatHasCome, key, keep < Duration::from_secs(1));
        if self.has(Bug::ZeroMeansForever) && keep.is_zero() {
            keep = Duration::MAX;
        }
        let mut cut = settled.clone();
        if let Settled::Completed(stored) = &mut cut
            && stored.bytes.len() > LIMIT
        {
            if self.has(Bug::TooLargeIsUnavailable) {
                return Err(StoreError::new("buggy", StoreErrorKind::Unavailable, "it does not fit"));
            }
            if self.has(Bug::CutsResultsOff) {
                stored.bytes = stored.bytes[..LIMIT].into();
            }
        }
        let settled = &cut;
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
        let released = self.store.release(key, owner, how).await?;
        if self.is_marked(key) && how == Release::Abandon {
            self.store.forget(key, owner).await?;
        }
        Ok(released)
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
        if let Some(record) = self.store.load(key).await?
            && record.owner == owner
        {
            if self.has(Bug::SettledRecordTakesSteps) && matches!(record.state, State::Settled(_)) {
                return Ok(PutStep::Stored);
            }
            let known = record.steps.iter().find(|known| known.name == step.name);
            if self.has(Bug::FinishedStepDoesNotRenew)
                && let Some(Step { state: StepState::Done(bytes), .. }) = known
            {
                return Ok(PutStep::Exists(bytes.clone()));
            }
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
        if self.has(Bug::NobodyIsNoToken) && seen == OwnerToken::NOBODY {
            return Ok(Compared::Differs(self.store.load(key).await?.map(Box::new)));
        }
        let record = self.store.load(key).await?;
        if self.has(Bug::ResolvesTwice) && record.as_ref().is_some_and(|record| record.owner == replacement) {
            return Ok(Compared::Differs(record.map(Box::new)));
        }
        let replacement = if self.has(Bug::KeepsTheTokenWhenResolved) { seen } else { replacement };
        self.store.resolve(&self.key(key), seen, replacement, resolution).await
    }
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        let record = self.store.load(key).await?;
        if let Some(record) = &record
            && ((self.has(Bug::ForgetsTheLiving) && record.owner == seen)
                || (self.has(Bug::ForgetsWhatIsThere) && record.state.is_abandoned()))
        {
            self.store.release(key, record.owner, Release::Abandon).await?;
            return self.store.forget(key, record.owner).await;
        }
        self.store.forget(&self.key(key), seen).await
    }
    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        if self.has(Bug::PagesByNumber) {
            let all = self
                .store
                .list(&ListQuery { limit: usize::MAX, after: None, ..query.clone() })
                .await?
                .records;
            let from = query.after.as_deref().map_or(0, |after| after.parse().unwrap());
            let until = from + query.page_size();
            let next = (until < all.len()).then(|| until.to_string());
            return Ok(Page { records: all.into_iter().skip(from).take(query.page_size()).collect(), next });
        }
        if self.has(Bug::MixesOperations) {
            let all = ListQuery { limit: usize::MAX, operation: None, ..query.clone() };
            let mut page = self.store.list(&all).await?;
            let wanted = query.operation.as_deref().unwrap_or_default().to_lowercase();
            page.records.retain(|record| record.key.operation().to_lowercase().starts_with(&wanted));
            return Ok(page);
        }
        self.store.list(query).await
    }
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        let marked = std::mem::take(&mut *self.marked.lock().unwrap());
        for key in marked {
            if let Some(record) = self.store.load(&key).await? {
                self.store.release(&key, record.owner, Release::Forget).await?;
            }
        }
        self.store.purge(limit).await
    }
    fn max_result_bytes(&self) -> Option<usize> {
        (self.has(Bug::CutsResultsOff) || self.has(Bug::TooLargeIsUnavailable)).then_some(LIMIT)
    }
    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        let Some(watch) = self.store.watch(key).await? else { return Ok(None) };
        if !self.has(Bug::SleepsThroughTheLastAttempt) {
            return Ok(Some(watch));
        }
        let (store, key) = (self.store.clone(), key.clone());
        Ok(Some(Box::pin(async move {
            watch.await;
            // Left to nobody, it is nobody's business to tell.
            if store
                .load(&key)
                .await
                .is_ok_and(|record| record.is_some_and(|record| record.owner == OwnerToken::NOBODY))
            {
                std::future::pending::<()>().await;
            }
        })))
    }
}
