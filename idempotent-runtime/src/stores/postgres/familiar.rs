//! Which keys this process has asked for lately: a hint, never an answer.
//!
//! The statement that reserves can do everything, and to make it ready costs the server more than to read a row. Where a
//! record is likely to be there already, a plain look at it answers a duplicate for less. If the hint was wrong, the
//! reservation follows, one round trip later.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::key::RecordKey;
use crate::store::{Record, Reserve, State};

/// 64 KiB. A newer key takes the place of an older one.
const PLACES: usize = 16 * 1024;

/// Digests of keys, each at the place that another part of it names.
#[derive(Debug)]
pub(super) struct Familiar {
    hasher: RandomState,
    places: Box<[AtomicU32]>,
}

impl Familiar {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), places: (0..PLACES).map(|_| AtomicU32::new(0)).collect() }
    }

    fn place(&self, key: &RecordKey) -> Option<(&AtomicU32, u32)> {
        let hash = self.hasher.hash_one(key.as_str()).to_be_bytes();
        let (digest, rest) = hash.split_first_chunk::<4>()?;
        let place = rest.first_chunk::<2>().map(|place| u16::from_be_bytes(*place))?;
        // Zero says that there is nothing.
        Some((self.places.get(usize::from(place) % PLACES)?, u32::from_be_bytes(*digest) | 1))
    }

    pub(super) fn has(&self, key: &RecordKey) -> bool {
        self.place(key).is_some_and(|(place, digest)| place.load(Ordering::Relaxed) == digest)
    }

    pub(super) fn add(&self, key: &RecordKey) {
        if let Some((place, digest)) = self.place(key) {
            place.store(digest, Ordering::Relaxed);
        }
    }

    pub(super) fn remove(&self, key: &RecordKey) {
        if let Some((place, digest)) = self.place(key) {
            // Somebody else's stays.
            let _ = place.compare_exchange(digest, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Whether `record`, as it has just been read, stands in the way of `request`.
pub(super) fn stands_in_the_way(record: &Record, request: &Reserve<'_>) -> bool {
    match record.state {
        State::Settled(_) => true,
        State::Running { lease_left, effects_begun } => {
            record.owner != request.owner
                && (!lease_left.is_zero()
                    || record.fingerprint != request.fingerprint
                    || !request.take_over.allows(effects_begun, &record.steps))
        }
    }
}
