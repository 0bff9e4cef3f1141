//! A store of one's own, complete and as small as it can be: everything under one lock.
//!
//! Yours keeps its records elsewhere; the conditions and the answers are the same. The one test at the end is all it takes
//! to prove them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use idempotent_runtime::fingerprint::Fingerprint;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Grant, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved,
    Resolution, Settled, State, Step, StepState, Store, StoreResult, Write, async_trait,
};
use idempotent_runtime::testing::conformance;
use tokio::time::Instant;

#[derive(Debug, Default)]
struct OwnStore(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<String, Row>,
    /// The greatest fence that was given out, so that it grows across generations.
    fence: u64,
}

#[derive(Clone, Debug)]
struct Row {
    key: RecordKey,
    owner: OwnerToken,
    attempt: u32,
    fence: u64,
    fingerprint: Fingerprint,
    /// `None`: running.
    settled: Option<Settled>,
    effects_begun: bool,
    lease_ends: Instant,
    steps: Vec<Step>,
    created_at: SystemTime,
    expires: Instant,
}

/// `span` later. What is longer than a lifetime is as good as a lifetime, and two of those fit into every clock.
fn after(now: Instant, span: Duration) -> Instant {
    now + span.min(Duration::from_secs(100 * 365 * 24 * 60 * 60))
}

impl Row {
    fn record(&self, now: Instant) -> Record {
        let running = State::Running {
            lease_left: self.lease_ends.saturating_duration_since(now),
            effects_begun: self.effects_begun,
        };
        Record {
            key: self.key.clone(),
            owner: self.owner,
            attempt: self.attempt,
            fence: self.fence,
            fingerprint: self.fingerprint,
            state: self.settled.clone().map_or(running, State::Settled),
            steps: self.steps.clone(),
            created_at: self.created_at,
            expires_in: self.expires.saturating_duration_since(now),
        }
    }

    fn is_live(&self, now: Instant) -> bool {
        self.settled.is_none() && self.lease_ends > now
    }

    fn renew(&mut self, lease: Lease, now: Instant) {
        self.lease_ends = after(now, lease.duration);
        self.expires = after(self.lease_ends, lease.unknown_ttl);
    }

    /// Ends the lease now, if it is not over; the record is remembered as long after it as it would have been.
    fn end_lease(&mut self, now: Instant) {
        self.expires -= self.lease_ends.saturating_duration_since(now);
        self.lease_ends = self.lease_ends.min(now);
    }

    fn settle(&mut self, settled: Settled, expires: Instant) {
        // What is unknown may be sent back to work, and what is done must not be done again.
        if settled != Settled::Unknown {
            self.steps.clear();
        }
        self.settled = Some(settled);
        self.expires = expires;
    }

    /// Nothing has happened but the finished steps. `false`: there are none.
    fn reopen(&mut self, now: Instant) -> bool {
        self.steps.retain(|step| matches!(step.state, StepState::Done(_)));
        self.effects_begun = false;
        if self.settled.take().is_some() {
            self.lease_ends = now;
        }
        self.end_lease(now);
        !self.steps.is_empty()
    }
}

impl Table {
    /// The row of `key`. An expired one is an absent one.
    fn row(&mut self, key: &RecordKey, now: Instant) -> Option<&mut Row> {
        if self.rows.get(key.as_str()).is_some_and(|row| row.expires <= now) {
            self.rows.remove(key.as_str());
        }
        self.rows.get_mut(key.as_str())
    }

    /// The row of `key`, if it is running under `owner`.
    fn owned(&mut self, key: &RecordKey, owner: OwnerToken, now: Instant) -> Option<&mut Row> {
        self.row(key, now).filter(|row| row.owner == owner && row.settled.is_none())
    }

    fn next_fence(&mut self) -> u64 {
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.fence = (self.fence + 1).max(u64::try_from(clock.as_micros()).unwrap_or(u64::MAX));
        self.fence
    }

    fn compared(&mut self, key: &RecordKey, now: Instant) -> Compared {
        Compared::Differs(self.row(key, now).map(|row| Box::new(row.record(now))))
    }
}

impl OwnStore {
    /// The table and the time, which is taken when the lock is held: what is judged is judged at one moment.
    fn table(&self) -> (MutexGuard<'_, Table>, Instant) {
        let table = self.0.lock().expect("nothing panics under this lock");
        (table, Instant::now())
    }
}

#[async_trait]
impl Store for OwnStore {
    fn name(&self) -> &'static str {
        "own"
    }

    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        let (mut table, now) = self.table();
        let fence = table.next_fence();
        let Some(row) = table.row(request.key, now) else {
            let mut row = Row {
                key: request.key.clone(),
                owner: request.owner,
                attempt: 1,
                fence,
                fingerprint: request.fingerprint,
                settled: None,
                effects_begun: false,
                lease_ends: now,
                steps: Vec::new(),
                created_at: SystemTime::now(),
                expires: now,
            };
            row.renew(request.lease, now);
            table.rows.insert(request.key.as_str().to_owned(), row);
            return Ok(Reserved::Granted(Grant { attempt: 1, fence, steps: Vec::new() }));
        };
        let again = row.settled.is_none() && row.owner == request.owner;
        let take_over = !again
            && row.settled.is_none()
            && !row.is_live(now)
            && row.fingerprint == request.fingerprint
            && request.take_over.allows(row.effects_begun, &row.steps);
        if take_over {
            if row.attempt >= request.max_attempts {
                row.owner = OwnerToken::NOBODY;
                row.settle(Settled::Unknown, after(now, request.lease.unknown_ttl));
            } else {
                (row.owner, row.attempt, row.fence) = (request.owner, row.attempt + 1, fence);
            }
        }
        if row.settled.is_some() || !(again || take_over) {
            return Ok(Reserved::Held(row.record(now)));
        }
        row.renew(request.lease, now);
        Ok(Reserved::Granted(Grant { attempt: row.attempt, fence: row.fence, steps: row.steps.clone() }))
    }

    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let (mut table, now) = self.table();
        let Some(row) = table.owned(key, owner, now) else { return Ok(Write::Lost) };
        row.renew(lease, now);
        Ok(Write::Applied)
    }

    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        let (mut table, now) = self.table();
        let Some(row) = table.owned(key, owner, now) else { return Ok(Write::Lost) };
        row.effects_begun = true;
        row.renew(lease, now);
        Ok(Write::Applied)
    }

    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        let (mut table, now) = self.table();
        match table.row(key, now).filter(|row| row.owner == owner) {
            None => Ok(Write::Lost),
            Some(row) => {
                // Settled by the same owner already: its answer had been lost.
                if row.settled.is_none() {
                    row.settle(settled.clone(), after(now, keep));
                }
                Ok(Write::Applied)
            }
        }
    }

    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        let (mut table, now) = self.table();
        let Some(row) = table.row(key, now) else { return Ok(Write::Applied) };
        if row.owner != owner || row.settled.is_some() {
            return Ok(Write::Lost);
        }
        let keep = match how {
            Release::Forget => row.reopen(now),
            Release::Unused if row.attempt <= 1 && row.steps.is_empty() => false,
            Release::Unused => {
                row.end_lease(now);
                row.attempt = row.attempt.saturating_sub(1);
                row.owner = OwnerToken::NOBODY;
                true
            }
            Release::Abandon => {
                row.end_lease(now);
                true
            }
        };
        if !keep {
            table.rows.remove(key.as_str());
        }
        Ok(Write::Applied)
    }

    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        let (mut table, now) = self.table();
        let Some(row) = table.owned(key, owner, now) else { return Ok(PutStep::Lost) };
        row.renew(lease, now);
        match row.steps.iter_mut().find(|known| known.name == step.name) {
            Some(Step { state: StepState::Done(bytes), .. }) => return Ok(PutStep::Exists(bytes.clone())),
            Some(known) => known.state = step.state.clone(),
            None => row.steps.push(step.clone()),
        }
        Ok(PutStep::Stored)
    }

    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        let (mut table, now) = self.table();
        Ok(table.row(key, now).map(|row| row.record(now)))
    }

    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let (mut table, now) = self.table();
        let Some(row) = table.row(key, now) else { return Ok(Compared::Differs(None)) };
        if row.owner == replacement {
            return Ok(Compared::Changed);
        }
        let open = matches!(row.settled, Some(Settled::Unknown | Settled::NotRetained))
            || (row.settled.is_none() && !row.is_live(now));
        if row.owner != seen || !open {
            return Ok(table.compared(key, now));
        }
        row.owner = replacement;
        let keep = match resolution {
            Resolution::Done { settled, keep } => {
                row.settle(settled.clone(), after(now, *keep));
                true
            }
            Resolution::NotDone => {
                row.attempt = 0;
                row.reopen(now)
            }
        };
        if !keep {
            table.rows.remove(key.as_str());
        }
        Ok(Compared::Changed)
    }

    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        let (mut table, now) = self.table();
        if table.row(key, now).is_none_or(|row| row.owner != seen || row.is_live(now)) {
            return Ok(table.compared(key, now));
        }
        table.rows.remove(key.as_str());
        Ok(Compared::Changed)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        let (table, now) = self.table();
        let after = query.after.as_deref().unwrap_or_default();
        let mut records: Vec<Record> = table
            .rows
            .values()
            .filter(|row| row.expires > now && row.key.as_str() > after)
            .map(|row| row.record(now))
            .filter(|record| query.matches(record))
            .take(query.page_size() + 1)
            .collect();
        let more = records.len() > query.page_size();
        records.truncate(query.page_size());
        let next = records.last().filter(|_| more).map(|record| record.key.as_str().to_owned());
        Ok(Page { records, next })
    }

    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        let (mut table, now) = self.table();
        let expired: Vec<String> = table
            .rows
            .iter()
            .filter(|(_, row)| row.expires <= now)
            .take(limit)
            .map(|(key, _)| key.clone())
            .collect();
        for key in &expired {
            table.rows.remove(key);
        }
        Ok(expired.len())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_of_ones_own_conforms() {
    conformance::run(OwnStore::default()).await;
}
