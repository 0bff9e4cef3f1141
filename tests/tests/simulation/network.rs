//! What is between a process and the store: everything arrives late, twice, out of order or not at all.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, State, Step, Store, StoreError, StoreErrorKind, StoreResult, Write, async_trait,
};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::ledger::World;
use crate::mutant::Mutant;

/// One process's way to the store.
#[derive(Clone, Debug)]
pub struct Network {
    pub store: Mutant,
    pub world: Arc<World>,
    pub process: u64,
    /// The process has crashed: nothing that it still does arrives.
    pub cut: Arc<AtomicBool>,
}

type Doing<T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send>>;

impl Network {
    async fn carry<T: Debug + Send + 'static>(
        &self,
        what: String,
        op: impl Fn(Mutant) -> Doing<T> + Send + Sync + 'static,
        write: Option<(RecordKey, OwnerToken, bool)>,
    ) -> StoreResult<T> {
        if self.cut.load(Ordering::Relaxed) {
            return Err(StoreError::new("simulated", StoreErrorKind::Refused, "the process is dead"));
        }
        let world = Arc::clone(&self.world);
        let lost = StoreError::new("simulated", StoreErrorKind::Unavailable, "no answer");
        let late = |one_in| {
            if world.mishap(one_in) {
                Duration::from_millis(world.roll(1500))
            } else {
                Duration::from_millis(world.roll(4))
            }
        };
        let (there, back) = (late(12), late(12));
        let (request_lost, reply_lost, twice) = (world.mishap(20), world.mishap(12), world.mishap(20));
        let later = Duration::from_millis(world.roll(2000));
        if request_lost {
            world.note(|| format!("p{} {what}: request lost", self.process));
            sleep(there).await;
            return Err(lost);
        }
        let (tell, told) = oneshot::channel();
        let (store, process) = (self.store.clone(), self.process);
        tokio::spawn(async move {
            sleep(there).await;
            let answer = audited(&world, &store, &op, write.as_ref()).await;
            world.note(|| {
                format!("p{process} {what} -> {answer:?}{}", if reply_lost { ", lost" } else { "" })
            });
            if reply_lost {
                drop(tell);
            } else {
                sleep(back).await;
                let _ = tell.send(answer);
            }
            if twice {
                sleep(later).await;
                let answer = audited(&world, &store, &op, write.as_ref()).await;
                world.note(|| format!("p{process} {what} again -> {answer:?}"));
            }
        });
        let answer = told.await.unwrap_or(Err(lost));
        if self.cut.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        answer
    }
}

/// Does it, and sees to it that nothing stale writes. Nothing in here waits, so nothing comes between.
async fn audited<T>(
    world: &World,
    store: &Mutant,
    op: &impl Fn(Mutant) -> Doing<T>,
    write: Option<&(RecordKey, OwnerToken, bool)>,
) -> StoreResult<T> {
    let Some((key, owner, reserves)) = write else { return op(store.clone()).await };
    let before = store.store.load(key).await?;
    let answer = op(store.clone()).await;
    let after = store.store.load(key).await?;
    if before != after {
        let stale = match &before {
            None => !reserves,
            Some(Record { state: State::Settled(_), .. }) => true,
            Some(before) => before.owner != *owner && !(*reserves && before.state.is_abandoned()),
        };
        if stale {
            world.violation(format!("{}: {owner} changed {before:?} to {after:?}", key.as_str()));
        }
    }
    answer
}

#[async_trait]
impl Store for Network {
    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        let key = request.key.clone();
        let Reserve { owner, fingerprint, lease, take_over, max_attempts, .. } = request;
        let write = Some((key.clone(), owner, true));
        let world = Arc::clone(&self.world);
        let op = move |store: Mutant| -> Doing<Reserved> {
            let (key, world) = (key.clone(), Arc::clone(&world));
            Box::pin(async move {
                let request = Reserve { key: &key, owner, fingerprint, lease, take_over, max_attempts };
                let reserved = store.reserve(request).await;
                if let Ok(Reserved::Held(Record { owner: holder, state: State::Running { .. }, .. })) =
                    &reserved
                    && *holder == owner
                {
                    world.violation(format!("{}: {owner} is kept out by itself", key.as_str()));
                }
                reserved
            })
        };
        self.carry(format!("reserve {owner}"), op, write).await
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let write = Some((key.clone(), owner, false));
        let key = key.clone();
        let op = move |store: Mutant| -> Doing<Write> {
            let key = key.clone();
            Box::pin(async move { store.renew(&key, owner, lease).await })
        };
        self.carry(format!("renew {owner}"), op, write).await
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let write = Some((key.clone(), owner, false));
        let key = key.clone();
        let op = move |store: Mutant| -> Doing<Write> {
            let key = key.clone();
            Box::pin(async move { store.begin_effects(&key, owner, lease).await })
        };
        self.carry(format!("begin_effects {owner}"), op, write).await
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        let write = Some((key.clone(), owner, false));
        let what = format!("complete {owner} {}", settled.name());
        let (key, settled) = (key.clone(), settled.clone());
        let op = move |store: Mutant| -> Doing<Write> {
            let (key, settled) = (key.clone(), settled.clone());
            Box::pin(async move { store.complete(&key, owner, &settled, keep).await })
        };
        self.carry(what, op, write).await
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let write = Some((key.clone(), owner, false));
        let key = key.clone();
        let op = move |store: Mutant| -> Doing<Write> {
            let key = key.clone();
            Box::pin(async move { store.release(&key, owner, how).await })
        };
        self.carry(format!("release {owner} {how:?}"), op, write).await
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        let write = Some((key.clone(), owner, false));
        let what = format!("put_step {owner} {step:?}");
        let (key, step) = (key.clone(), step.clone());
        let op = move |store: Mutant| -> Doing<PutStep> {
            let (key, step) = (key.clone(), step.clone());
            Box::pin(async move { store.put_step(&key, owner, &step, lease).await })
        };
        self.carry(what, op, write).await
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        let key = key.clone();
        let op = move |store: Mutant| -> Doing<Option<Record>> {
            let key = key.clone();
            Box::pin(async move { store.load(&key).await })
        };
        self.carry("load".to_owned(), op, None).await
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
}
