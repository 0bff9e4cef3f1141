//! The locks and counters of the memory store: those of the standard library, or, under `--cfg shuttle`, those of a scheduler
//! that tries one interleaving of threads after the other.

#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::AtomicUsize;
#[cfg(not(shuttle))]
pub(super) use std::sync::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub(super) use counter::AtomicUsize;
#[cfg(shuttle)]
pub(super) use shuttle::sync::{Mutex, MutexGuard};

/// A counter that can be broken, to show that the tests would find it.
#[cfg(shuttle)]
pub(super) mod counter {
    use std::cell::Cell;
    use std::sync::atomic::Ordering;

    thread_local! {
        /// Whether counters read and write in two steps, as they must not. The scheduler runs all threads of a test on one.
        pub(crate) static TORN: Cell<bool> = const { Cell::new(false) };
    }

    #[derive(Debug)]
    pub(crate) struct AtomicUsize(shuttle::sync::atomic::AtomicUsize);

    impl AtomicUsize {
        pub(crate) fn new(count: usize) -> Self {
            Self(shuttle::sync::atomic::AtomicUsize::new(count))
        }

        pub(crate) fn load(&self, order: Ordering) -> usize {
            self.0.load(order)
        }

        pub(crate) fn fetch_add(&self, by: usize, order: Ordering) -> usize {
            self.0.fetch_add(by, order)
        }

        pub(crate) fn fetch_sub(&self, by: usize, order: Ordering) -> usize {
            self.0.fetch_sub(by, order)
        }

        pub(crate) fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            mut update: impl FnMut(usize) -> Option<usize>,
        ) -> Result<usize, usize> {
            if !TORN.get() {
                return self.0.fetch_update(set, fetch, update);
            }
            let seen = self.0.load(fetch);
            let next = update(seen).ok_or(seen)?;
            self.0.store(next, set);
            Ok(seen)
        }
    }
}
