//! Some of the records, and every operation on one of them: what happens while a lock is held.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::expiry::Expiry;
use super::moment::Moment;
use super::slot::{Phase, Slot, silent_until};
use super::waiters::{Waiter, Waiters};
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, OwnerToken, PutStep, Record, Release, Reserve, Reserved, Resolution, Settled, Step,
    Write,
};

/// How many expired records a reservation takes away on its way: more than the one that it adds.
const SWEPT_PER_RESERVATION: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Shard {
    // The records are boxed, because a map has up to twice as many places as entries.
    slots: HashMap<Arc<str>, Box<Slot>>,
    expiry: Expiry,
    pub(super) waiters: Waiters,
    /// The greatest fence of all records that are, or were, here. It outlives them, so that a fence grows across
    /// generations even if the clock stands still or goes back.
    fence: u64,
}

/// What is left to do when the lock is given back. Dropping it does most of that: it frees the records that went, and
/// wakes who waited, whose code must not run while the lock is held.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    #[expect(clippy::vec_box, reason = "they come out of the map as they are, and go without being moved")]
    pub(super) gone: Vec<Box<Slot>>,
    woken: Vec<Vec<(u64, Waiter)>>,
}

/// There is no room for another record.
#[derive(Debug)]
pub(super) struct Full;

impl Shard {
    /// `room` takes the place of one more record, if there is one.
    pub(super) fn reserve(
        &mut self,
        request: &Reserve<'_>,
        room: impl FnOnce() -> bool,
        now: Moment,
        after: &mut Aftermath,
    ) -> Result<Reserved, Full> {
        let Self { slots, expiry, fence, waiters } = self;
        let slot = match slots.get_mut(request.key.as_str()) {
            Some(slot) if !slot.expires.has_come(now) => slot,
            expired => {
                if expired.is_some() {
                    self.remove(request.key, after);
                }
                self.sweep(SWEPT_PER_RESERVATION, now, after);
                return if room() { Ok(self.grant_new(request, now)) } else { Err(Full) };
            }
        };
        if slot.runs_under(request.owner) {
            slot.renew(request.lease, now);
        } else if !slot.yields_to(request, now) {
            return Ok(Reserved::Held(slot.record(now)));
        } else if slot.attempt >= request.max_attempts {
            slot.owner = OwnerToken::NOBODY;
            slot.settle(Settled::Unknown);
            expiry.change(slot, now.after(request.lease.unknown_ttl));
            after.wake(waiters, request.key);
            return Ok(Reserved::Held(slot.record(now)));
        } else {
            *fence = next_fence(*fence, now);
            slot.fence = *fence;
            slot.attempt = slot.attempt.saturating_add(1);
            slot.owner = request.owner;
            slot.renew(request.lease, now);
        }
        expiry.change(slot, silent_until(request.lease, now));
        Ok(Reserved::Granted(slot.grant()))
    }

    fn grant_new(&mut self, request: &Reserve<'_>, now: Moment) -> Reserved {
        self.fence = next_fence(self.fence, now);
        let slot = Box::new(Slot::new(request, self.fence, now));
        let grant = slot.grant();
        self.expiry.insert(&slot);
        self.slots.insert(Arc::clone(slot.key.shared()), slot);
        Reserved::Granted(grant)
    }

    /// The record of `owner`, if it is running.
    fn owned(
        &mut self,
        key: &RecordKey,
        owner: OwnerToken,
        now: Moment,
    ) -> Option<(&mut Slot, &mut Expiry, &mut Waiters)> {
        let slot = self.slots.get_mut(key.as_str())?;
        let is_theirs = slot.runs_under(owner) && !slot.expires.has_come(now);
        is_theirs.then_some((&mut **slot, &mut self.expiry, &mut self.waiters))
    }

    /// Renews the lease of `owner`, and does what else is to be done to the record.
    pub(super) fn renew(
        &mut self,
        key: &RecordKey,
        owner: OwnerToken,
        lease: Lease,
        also: impl FnOnce(&mut Slot),
        now: Moment,
        after: &mut Aftermath,
    ) -> Write {
        let Some((slot, expiry, waiters)) = self.owned(key, owner, now) else { return Write::Lost };
        also(slot);
        slot.renew(lease, now);
        expiry.change(slot, silent_until(lease, now));
        if lease.duration.is_zero() {
            after.wake(waiters, key);
        }
        Write::Applied
    }

    pub(super) fn put_step(
        &mut self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
        now: Moment,
        after: &mut Aftermath,
    ) -> PutStep {
        let mut answer = PutStep::Lost;
        self.renew(key, owner, lease, |slot| answer = slot.put_step(step), now, after);
        answer
    }

    pub(super) fn complete(
        &mut self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
        now: Moment,
        after: &mut Aftermath,
    ) -> Write {
        let Some((slot, expiry, waiters)) = self.owned(key, owner, now) else {
            let already = self.current(key, now).is_some_and(|slot| slot.owner == owner);
            return if already { Write::Applied } else { Write::Lost };
        };
        slot.settle(settled.clone());
        expiry.change(slot, now.after(keep));
        after.wake(waiters, key);
        Write::Applied
    }

    pub(super) fn release(
        &mut self,
        key: &RecordKey,
        owner: OwnerToken,
        how: Release,
        now: Moment,
        after: &mut Aftermath,
    ) -> Write {
        let Some((slot, expiry, waiters)) = self.owned(key, owner, now) else {
            return if self.current(key, now).is_none() { Write::Applied } else { Write::Lost };
        };
        let nothing_to_keep = match how {
            Release::Forget => !slot.forget_begun(),
            Release::Unused => slot.is_untouched(),
            Release::Abandon => false,
        };
        if nothing_to_keep {
            self.remove(key, after);
            return Write::Applied;
        }
        if let Some(expires) = slot.end_lease(now) {
            expiry.change(slot, expires);
        }
        if how == Release::Unused {
            slot.attempt = slot.attempt.saturating_sub(1);
            slot.owner = OwnerToken::NOBODY;
        }
        after.wake(waiters, key);
        Write::Applied
    }

    pub(super) fn resolve(
        &mut self,
        key: &RecordKey,
        seen: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
        now: Moment,
        after: &mut Aftermath,
    ) -> Compared {
        let Some(slot) = self.slots.get_mut(key.as_str()).filter(|slot| !slot.expires.has_come(now)) else {
            return Compared::Differs(None);
        };
        if slot.owner == replacement {
            return Compared::Changed;
        }
        if slot.owner != seen || !slot.waits_for_somebody(now) {
            return Compared::Differs(Some(Box::new(slot.record(now))));
        }
        slot.owner = replacement;
        match resolution {
            Resolution::Done { settled, keep } => {
                slot.settle(settled.clone());
                self.expiry.change(slot, now.after(*keep));
            }
            Resolution::NotDone if slot.forget_begun() => {
                slot.attempt = 0;
                if !slot.is_abandoned(now) {
                    slot.phase = Phase::Running { lease_ends: now, effects_begun: false };
                }
            }
            Resolution::NotDone => {
                self.remove(key, after);
                return Compared::Changed;
            }
        }
        after.wake(&mut self.waiters, key);
        Compared::Changed
    }

    pub(super) fn forget(
        &mut self,
        key: &RecordKey,
        seen: OwnerToken,
        now: Moment,
        after: &mut Aftermath,
    ) -> Compared {
        match self.current(key, now) {
            None => Compared::Differs(None),
            Some(slot) if slot.owner != seen || slot.is_live(now) => {
                Compared::Differs(Some(Box::new(slot.record(now))))
            }
            Some(_) => {
                self.remove(key, after);
                Compared::Changed
            }
        }
    }

    pub(super) fn load(&self, key: &RecordKey, now: Moment) -> Option<Record> {
        self.current(key, now).map(|slot| slot.record(now))
    }

    /// Every record that has not expired, in no order.
    pub(super) fn iter(&self, now: Moment) -> impl Iterator<Item = &Slot> {
        self.slots.values().map(|slot| &**slot).filter(move |slot| !slot.expires.has_come(now))
    }

    /// Takes out at most `limit` expired records, and looks at no others.
    pub(super) fn sweep(&mut self, limit: usize, now: Moment, after: &mut Aftermath) -> usize {
        for swept in 0..limit {
            let Some(key) = self.expiry.pop(now) else { return swept };
            after.gone.extend(self.slots.remove(&key));
            after.woken.push(self.waiters.take(&key));
        }
        limit
    }

    fn current(&self, key: &RecordKey, now: Moment) -> Option<&Slot> {
        self.slots.get(key.as_str()).map(|slot| &**slot).filter(|slot| !slot.expires.has_come(now))
    }

    fn remove(&mut self, key: &RecordKey, after: &mut Aftermath) {
        if let Some(slot) = self.slots.remove(key.as_str()) {
            self.expiry.remove(&slot);
            after.gone.push(slot);
        }
        after.wake(&mut self.waiters, key);
    }
}

impl Aftermath {
    fn wake(&mut self, waiters: &mut Waiters, key: &RecordKey) {
        let waiters = waiters.take(key.as_str());
        if !waiters.is_empty() {
            self.woken.push(waiters);
        }
    }
}

fn next_fence(last: u64, now: Moment) -> u64 {
    last.saturating_add(1).max(now.as_micros())
}
