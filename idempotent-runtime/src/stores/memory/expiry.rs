//! Which record of a shard expires next.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::moment::Moment;
use super::slot::Slot;

/// Every record of a shard, the one that expires first at the front: whoever looks for expired records touches no
/// other, however many there are. Exact at all times, because a record that is completed expires earlier than one
/// whose attempt is silent, so an entry that was put right only when its time comes would come too late.
#[derive(Debug, Default)]
pub(super) struct Expiry(BTreeSet<(Moment, Arc<str>)>);

impl Expiry {
    pub(super) fn insert(&mut self, slot: &Slot) {
        self.0.insert((slot.expires, Arc::clone(slot.key.shared())));
    }

    pub(super) fn remove(&mut self, slot: &Slot) {
        self.0.remove(&(slot.expires, Arc::clone(slot.key.shared())));
    }

    /// Lets `slot` expire at another moment.
    pub(super) fn change(&mut self, slot: &mut Slot, expires: Moment) {
        if slot.expires != expires {
            self.remove(slot);
            slot.expires = expires;
            self.insert(slot);
        }
    }

    /// Takes out the key that expired first, if one did.
    pub(super) fn pop(&mut self, now: Moment) -> Option<Arc<str>> {
        if !self.0.first()?.0.has_come(now) {
            return None;
        }
        self.0.pop_first().map(|(_, key)| key)
    }
}
