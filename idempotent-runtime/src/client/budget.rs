//! How many retries a host may be sent, beside its requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Retries that are saved up at most, and there to begin with.
const SAVED: f64 = 10.0;

/// For each host what is left.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<HashMap<String, f64>>);

impl Budget {
    /// A request earns a part of a retry.
    pub(super) fn earn(&self, host: &str, part: f64) {
        self.change(host, |left| *left = (*left + part).min(SAVED));
    }

    /// Whether a retry is left; then it is taken.
    pub(super) fn spend(&self, host: &str) -> bool {
        self.change(host, |left| {
            let enough = *left >= 1.0;
            if enough {
                *left -= 1.0;
            }
            enough
        })
    }

    fn change<T>(&self, host: &str, change: impl FnOnce(&mut f64) -> T) -> T {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match hosts.get_mut(host) {
            Some(left) => change(left),
            None => change(hosts.entry(host.to_owned()).or_insert(SAVED)),
        }
    }
}
