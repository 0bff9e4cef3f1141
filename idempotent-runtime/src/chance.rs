//! The two things that are left to chance: tokens, and how long a pause is.
//!
//! With the feature `testing` a test may give a thread a seed, so that whatever happens on it happens again.

use std::cell::RefCell;

use rand::RngExt;
use rand::rngs::SmallRng;

thread_local! {
    /// Tokens have to be different, and nobody gains by guessing one, so a small generator will do. Its seed is the system's.
    static TOKENS: RefCell<SmallRng> = RefCell::new(rand::make_rng());
}

/// Bytes that nobody else has.
pub(crate) fn token() -> [u8; 16] {
    #[cfg(feature = "testing")]
    if let Some(bytes) = seeded::bytes() {
        return bytes;
    }
    // A thread that is about to end has none any more.
    TOKENS.try_with(|tokens| tokens.borrow_mut().random()).unwrap_or_else(|_| rand::random())
}

/// A factor that keeps those apart who begin at the same time: from a half to one.
pub(crate) fn jitter() -> f64 {
    #[cfg(feature = "testing")]
    if let Some([a, b, ..]) = seeded::bytes() {
        return 0.5 + f64::from(u16::from_le_bytes([a, b])) / f64::from(u16::MAX) / 2.0;
    }
    rand::random_range(0.5..1.0)
}

#[cfg(feature = "testing")]
pub(crate) mod seeded {
    use std::cell::RefCell;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    thread_local! {
        static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    }

    /// Lets everything that this library leaves to chance on this thread follow from `seed`; `None`: as ever.
    pub fn seed_this_thread(seed: Option<u64>) {
        SEEDED.set(seed.map(StdRng::seed_from_u64));
    }

    pub(super) fn bytes() -> Option<[u8; 16]> {
        SEEDED.with_borrow_mut(|generator| {
            let generator = generator.as_mut()?;
            let mut bytes = [0; 16];
            generator.fill_bytes(&mut bytes);
            Some(bytes)
        })
    }
}
