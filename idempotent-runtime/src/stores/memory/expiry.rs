//! Which record of a shard expires next.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::moment::Moment;
use super::slot::{Phase, Slot};

/// Every record of a shard, the one that expires first at the front: whoever looks for expired records touches no
/// other, however many there are. Exact at all times, because a record that is completed expires earlier than one
/// whose attempt is silent, so an entry that was put right only when its time comes would come too late.
///
/// Running records come and go while settled ones stay, so they have an index of their own: it is small, and what a
/// call does to it costs the same however many results are kept.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    running: BTreeSet<Entry>,
    settled: BTreeSet<Entry>,
}

type Entry = (Moment, Arc<str>);

fn entry(slot: &Slot) -> Entry {
    (slot.expires, Arc::clone(slot.key.shared()))
}

impl Expiry {
    pub(super) fn insert(&mut self, slot: &Slot) {
        match slot.phase {
            Phase::Running { .. } => self.running.insert(entry(slot)),
            Phase::Settled(_) => self.settled.insert(entry(slot)),
        };
    }

    pub(super) fn remove(&mut self, slot: &Slot) {
        // It may have changed its phase since it was inserted.
        let entry = entry(slot);
        let _ = self.running.remove(&entry) || self.settled.remove(&entry);
    }

    /// Lets `slot` expire at another moment.
    pub(super) fn change(&mut self, slot: &mut Slot, expires: Moment) {
        if slot.expires != expires {
            self.remove(slot);
            slot.expires = expires;
            self.insert(slot);
        }
    }

    /// Takes out a key that has expired, if one has.
    pub(super) fn pop(&mut self, now: Moment) -> Option<Arc<str>> {
        [&mut self.settled, &mut self.running].into_iter().find_map(|index| {
            let is_over = index.first()?.0.has_come(now);
            if is_over { index.pop_first().map(|(_, key)| key) } else { None }
        })
    }
}
