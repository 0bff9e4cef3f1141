//! Who waits for a change of which record.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

/// One waiter: it is woken when this is dropped.
pub(super) type Waiter = oneshot::Sender<()>;

/// The waiters of a shard. Empty, and then without cost, nearly always.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    by_key: HashMap<Arc<str>, Vec<(u64, Waiter)>>,
    next: u64,
}

impl Waiters {
    /// Registers somebody, under a number for [`Waiters::leave`].
    pub(super) fn join(&mut self, key: &Arc<str>) -> (u64, oneshot::Receiver<()>) {
        let (waiter, woken) = oneshot::channel();
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.by_key.entry(Arc::clone(key)).or_default().push((number, waiter));
        (number, woken)
    }

    /// Forgets somebody who does not wait any more; nothing if that one was woken.
    pub(super) fn leave(&mut self, key: &str, number: u64) -> Option<Waiter> {
        let waiters = self.by_key.get_mut(key)?;
        let place = waiters.iter().position(|(other, _)| *other == number)?;
        let (_, waiter) = waiters.swap_remove(place);
        if waiters.is_empty() {
            self.by_key.remove(key);
        }
        Some(waiter)
    }

    /// Everybody who waits for `key`, to be woken by dropping them where no lock is held.
    pub(super) fn take(&mut self, key: &str) -> Vec<(u64, Waiter)> {
        if self.by_key.is_empty() { Vec::new() } else { self.by_key.remove(key).unwrap_or_default() }
    }

    #[cfg(feature = "testing")]
    pub(super) fn len(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }
}
