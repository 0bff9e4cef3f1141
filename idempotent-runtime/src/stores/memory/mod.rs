//! A store in the memory of one process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{Clock, SystemClock};
use crate::immediate::Immediate;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreError, StoreErrorKind, StoreResult, Watch, Write,
};
use moment::Moment;
use shard::{Aftermath, Full, Shard};
use sync::{AtomicUsize, Mutex, MutexGuard};

mod expiry;
mod moment;
mod shard;
mod slot;
mod sync;
mod waiters;

/// So many that threads seldom meet, and that whatever goes through a whole shard is done in well under a millisecond.
const SHARDS: usize = 1 << u8::BITS;
/// How many expired records are taken out before the lock is given back: a few microseconds.
const BATCH: usize = 32;

/// Records in the memory of this process: for tests, for a single process, and as the reference for other stores.
///
/// A clone is a handle to the same records. They are gone when the last handle is, so it protects against repetitions
/// only as long as the process lives.
///
/// It holds at most [`capacity`](MemoryStoreBuilder::capacity) records. When it is full, it takes out what has expired;
/// if that is nothing, new keys are refused with [`StoreErrorKind::Full`] while the known ones are served as ever: no
/// reservation and no result is ever thrown out to make room. Expired records are taken out by the way, a few with each
/// reservation, so it needs no background task and no runtime.
///
/// ```
/// use idempotent_runtime::stores::MemoryStore;
///
/// let store = MemoryStore::builder().capacity(10_000).build();
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    shards: Box<[Mutex<Shard>]>,
    clock: Arc<dyn Clock>,
    capacity: usize,
    /// Of all shards, expired ones that are still there included; never more than `capacity`.
    len: AtomicUsize,
    /// How many records the sweeps have looked at.
    visited: AtomicUsize,
    /// Where the next [`Store::purge`] begins, so that one with a small limit does not always serve the same shards.
    purged: AtomicUsize,
}

/// How a [`MemoryStore`] is made.
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryStoreBuilder {
    capacity: usize,
    clock: Arc<dyn Clock>,
}

impl MemoryStoreBuilder {
    /// How many records there may be at a time, 1,000,000 by default. With keys of 64 bytes and results of 300 bytes,
    /// that many take about 700 MB.
    pub fn capacity(mut self, records: usize) -> Self {
        self.capacity = records;
        self
    }

    /// What tells the time; [`SystemClock`] by default.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// An empty store.
    pub fn build(self) -> MemoryStore {
        let shared = Shared {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            clock: self.clock,
            capacity: self.capacity,
            len: AtomicUsize::new(0),
            visited: AtomicUsize::new(0),
            purged: AtomicUsize::new(0),
        };
        MemoryStore { shared: Arc::new(shared) }
    }
}

impl MemoryStore {
    /// An empty store with the default capacity.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Chooses capacity and clock.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder { capacity: 1_000_000, clock: Arc::new(SystemClock::default()) }
    }

    /// How many records it holds, expired ones that are still there included.
    pub fn len(&self) -> usize {
        self.shared.len.load(Ordering::Relaxed)
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records [`Store::purge`] has looked at since the store was made: not more than it deleted.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn visited_by_purge(&self) -> usize {
        self.shared.visited.load(Ordering::Relaxed)
    }

    /// Breaks the counters of the stores that this thread uses, or mends them.
    #[cfg(shuttle)]
    #[doc(hidden)]
    pub fn tear_counters(torn: bool) {
        sync::counter::TORN.set(torn);
    }

    /// How many futures of [`Store::watch`] are waiting.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn waiters(&self) -> usize {
        self.shared.shards.iter().map(|shard| lock(shard).waiters.len()).sum()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.len())
            .field("capacity", &self.shared.capacity)
            .finish_non_exhaustive()
    }
}

/// A panic while the lock was held leaves nothing half done: only the clock is foreign code there, and it is asked
/// before anything changes. So a poisoned lock is as good as any.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The shard of a key. Any spread will do: it decides who waits for whom, and the maps have hashes of their own that
    /// nobody can predict.
    fn shard(&self, key: &str) -> &Mutex<Shard> {
        let mut spread = 0_u64;
        let (words, rest) = key.as_bytes().as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        for word in words.iter().chain([&last]) {
            spread = (spread ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            spread ^= spread >> 32;
        }
        let [index, ..] = spread.to_le_bytes();
        #[expect(clippy::indexing_slicing, reason = "there is a shard for every value of a byte")]
        &self.shards[usize::from(index)]
    }

    /// Carries out one operation under the lock of one shard, at the moment at which it has the lock.
    fn under<T>(
        &self,
        shard: &Mutex<Shard>,
        operation: impl FnOnce(&mut Shard, Moment, &mut Aftermath) -> T,
    ) -> T {
        let mut after = Aftermath::default();
        let answer = {
            let mut shard = lock(shard);
            operation(&mut shard, Moment::of(self.clock.now()), &mut after)
        };
        if !after.gone.is_empty() {
            self.len.fetch_sub(after.gone.len(), Ordering::Relaxed);
        }
        answer
    }

    /// Takes the place of one record, if there is one.
    fn room(&self) -> bool {
        self.len
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |len| {
                (len < self.capacity).then_some(len + 1)
            })
            .is_ok()
    }

    fn purge(&self, limit: usize) -> usize {
        let first = self.purged.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut purged = 0;
        for shard in self.shards.iter().cycle().skip(first).take(SHARDS) {
            while purged < limit {
                let batch = BATCH.min(limit - purged);
                let swept = self.under(shard, |shard, now, after| shard.sweep(batch, now, after));
                self.visited.fetch_add(swept, Ordering::Relaxed);
                purged += swept;
                if swept < batch {
                    break;
                }
            }
        }
        purged
    }

    /// The page of `query`, in order of creation; `after` is where the page before it ended.
    fn list(&self, query: &ListQuery, after: Option<&(Moment, Arc<str>)>) -> Page {
        let size = query.page_size();
        let mut found: BTreeMap<(Moment, Arc<str>), Record> = BTreeMap::new();
        let mut more = false;
        for shard in &self.shards {
            self.under(shard, |shard, now, _| {
                for slot in shard.iter(now) {
                    let place = (slot.created, Arc::clone(slot.key.shared()));
                    let is_late = found.len() >= size && found.keys().next_back() < Some(&place);
                    if after.is_some_and(|after| place <= *after) || (is_late && more) {
                        continue;
                    }
                    let record = slot.record(now);
                    if query.matches(&record) {
                        found.insert(place, record);
                        if found.len() > size {
                            found.pop_last();
                            more = true;
                        }
                    }
                }
            });
        }
        let next = found.keys().next_back().filter(|_| more).map(cursor);
        Page { records: found.into_values().collect(), next }
    }
}

fn cursor((created, key): &(Moment, Arc<str>)) -> String {
    format!("{}:{key}", created.as_nanos())
}

fn parse_cursor(text: &str) -> StoreResult<(Moment, Arc<str>)> {
    text.split_once(':')
        .and_then(|(created, key)| Some((Moment::from_nanos(created.parse().ok()?), key.into())))
        .ok_or_else(|| error(StoreErrorKind::Refused, "the start of the page is none that a list has given"))
}

fn error(kind: StoreErrorKind, why: &str) -> StoreError {
    StoreError::new("memory", kind, why)
}

/// Somebody who waits; its registration ends with it.
struct Waiting {
    shared: Arc<Shared>,
    key: Arc<str>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What is taken out is dropped after the lock is given back.
        let _waiter = lock(self.shared.shard(&self.key)).waiters.leave(&self.key, self.number);
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        Immediate::reserve(self, &request)
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        Ok(self.at(key, |shard, now, after| shard.renew(key, owner, lease, |_| (), now, after)))
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let begin = slot::Slot::begin_effects;
        Ok(self.at(key, |shard, now, after| shard.renew(key, owner, lease, begin, now, after)))
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        Immediate::complete(self, key, owner, settled, keep)
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        Ok(self.at(key, |shard, now, after| shard.release(key, owner, how, now, after)))
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        Ok(self.at(key, |shard, now, after| shard.put_step(key, owner, step, lease, now, after)))
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        Ok(self.at(key, |shard, now, _| shard.load(key, now)))
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        Ok(self.at(key, |shard, now, after| shard.resolve(key, seen, replacement, resolution, now, after)))
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        Ok(self.at(key, |shard, now, after| shard.forget(key, seen, now, after)))
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        let after = query.after.as_deref().map(parse_cursor).transpose()?;
        Ok(self.shared.list(query, after.as_ref()))
    }

    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        Ok(self.shared.purge(limit))
    }

    async fn watch(&self, key: &RecordKey) -> StoreResult<Option<Watch>> {
        let (number, woken) = self.at(key, |shard, _, _| shard.waiters.join(key.shared()));
        let waiting = Waiting { shared: Arc::clone(&self.shared), key: Arc::clone(key.shared()), number };
        Ok(Some(Box::pin(async move {
            let _waiting = waiting;
            // An error says that the other half was dropped, and that is how waiters are woken.
            let _ = woken.await;
        })))
    }

    fn immediate(&self) -> Option<&dyn Immediate> {
        Some(self)
    }
}

impl Immediate for MemoryStore {
    fn reserve(&self, request: &Reserve<'_>) -> StoreResult<Reserved> {
        let room = || self.shared.room();
        let reserve = || self.at(request.key, |shard, now, after| shard.reserve(request, room, now, after));
        reserve()
            .or_else(|Full| {
                self.shared.purge(BATCH);
                reserve()
            })
            .map_err(|Full| {
                error(StoreErrorKind::Full, "it holds as many records as it may, and none has expired")
            })
    }

    fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        Ok(self.at(key, |shard, now, after| shard.complete(key, owner, settled, keep, now, after)))
    }
}

impl MemoryStore {
    fn at<T>(&self, key: &RecordKey, operation: impl FnOnce(&mut Shard, Moment, &mut Aftermath) -> T) -> T {
        self.shared.under(self.shared.shard(key.as_str()), operation)
    }
}
