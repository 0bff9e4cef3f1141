//! A store that breaks its contract, or a library that breaks the protocol, in one way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, State, Step, StepState, Store, StoreResult, TakeOver, Write, async_trait,
};
use idempotent_runtime::stores::MemoryStore;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    CompleteWithoutToken,
    ReleaseWithoutToken,
    RenewWithoutToken,
    MarksWithoutToken,
    ReserveIsNotRepeatable,
    CompleteIsNotRepeatable,
    TakeOverOfOtherArguments,
    ResolveKeepsToken,
    TtlWhileRunning,
    DropReleases,
    LostCompletionIsNotTold,
    TakeOverAlways,
    BegunEffectsAreNotWritten,
    BegunStepsAreNotWritten,
    FinishedStepsAreNotGiven,
    LeaseNeverEnds,
    CompleteWritesNothing,
}

impl Mutation {
    pub const ALL: [Self; 17] = [
        Self::CompleteWithoutToken,
        Self::ReleaseWithoutToken,
        Self::RenewWithoutToken,
        Self::MarksWithoutToken,
        Self::ReserveIsNotRepeatable,
        Self::CompleteIsNotRepeatable,
        Self::TakeOverOfOtherArguments,
        Self::ResolveKeepsToken,
        Self::TtlWhileRunning,
        Self::DropReleases,
        Self::LostCompletionIsNotTold,
        Self::TakeOverAlways,
        Self::BegunEffectsAreNotWritten,
        Self::BegunStepsAreNotWritten,
        Self::FinishedStepsAreNotGiven,
        Self::LeaseNeverEnds,
        Self::CompleteWritesNothing,
    ];
}

/// The store in memory, with at most one fault in it.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub store: MemoryStore,
    mutation: Option<Mutation>,
    /// Tokens that `resolve` has replaced, where they still count.
    replaced: Arc<Mutex<HashMap<OwnerToken, OwnerToken>>>,
}

impl Mutant {
    pub fn new(store: MemoryStore, mutation: Option<Mutation>) -> Self {
        Self { store, mutation, replaced: Arc::default() }
    }

    fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The token by which a write is judged.
    async fn token(&self, key: &RecordKey, owner: OwnerToken, unfenced: Mutation) -> StoreResult<OwnerToken> {
        if self.is(unfenced)
            && let Some(record) = self.store.load(key).await?
        {
            return Ok(record.owner);
        }
        Ok(self.replaced.lock().unwrap().get(&owner).copied().unwrap_or(owner))
    }

    fn lease(&self, lease: Lease) -> Lease {
        let mut lease = lease;
        if self.is(Mutation::TtlWhileRunning) {
            lease.unknown_ttl = Duration::ZERO;
        }
        if self.is(Mutation::LeaseNeverEnds) {
            lease.duration *= 1_000_000;
        }
        lease
    }
}

#[async_trait]
impl Store for Mutant {
    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn reserve(&self, mut request: Reserve<'_>) -> StoreResult<Reserved> {
        request.lease = self.lease(request.lease);
        if self.is(Mutation::TakeOverAlways) {
            request.take_over = TakeOver::Always;
        }
        if let Some(record) = self.store.load(request.key).await? {
            let runs = matches!(record.state, State::Running { .. });
            if self.is(Mutation::ReserveIsNotRepeatable) && runs && record.owner == request.owner {
                return Ok(Reserved::Held(record));
            }
            if self.is(Mutation::TakeOverOfOtherArguments) && record.state.is_abandoned() {
                request.fingerprint = record.fingerprint;
            }
        }
        let mut reserved = self.store.reserve(request).await?;
        if let (true, Reserved::Granted(grant)) = (self.is(Mutation::FinishedStepsAreNotGiven), &mut reserved)
        {
            grant.steps.clear();
        }
        Ok(reserved)
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let owner = self.token(key, owner, Mutation::RenewWithoutToken).await?;
        self.store.renew(key, owner, self.lease(lease)).await
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        if self.is(Mutation::BegunEffectsAreNotWritten) {
            return self.store.renew(key, owner, lease).await;
        }
        let owner = self.token(key, owner, Mutation::MarksWithoutToken).await?;
        self.store.begin_effects(key, owner, self.lease(lease)).await
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        let before = self.store.load(key).await?;
        if self.is(Mutation::CompleteWritesNothing) {
            return Ok(Write::Applied);
        }
        if self.is(Mutation::CompleteIsNotRepeatable)
            && before.is_some_and(|record| matches!(record.state, State::Settled(_)))
        {
            return Ok(Write::Lost);
        }
        let owner = self.token(key, owner, Mutation::CompleteWithoutToken).await?;
        let written = self.store.complete(key, owner, settled, keep).await?;
        Ok(if self.is(Mutation::LostCompletionIsNotTold) { Write::Applied } else { written })
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let owner = self.token(key, owner, Mutation::ReleaseWithoutToken).await?;
        let how = if self.is(Mutation::DropReleases) { Release::Forget } else { how };
        self.store.release(key, owner, how).await
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        if self.is(Mutation::BegunStepsAreNotWritten) && step.state == StepState::Begun {
            return Ok(PutStep::Stored);
        }
        let owner = self.token(key, owner, Mutation::MarksWithoutToken).await?;
        self.store.put_step(key, owner, step, self.lease(lease)).await
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
        if self.is(Mutation::ResolveKeepsToken) {
            self.replaced.lock().unwrap().insert(seen, replacement);
        }
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
}
