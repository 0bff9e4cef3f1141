//! Building a handle, and what can be wrong with its settings.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::codec::Codec;
use crate::idempotency::{Idempotency, ReplayInfo, Settings};
use crate::key;
use crate::policy::OnLost;
use crate::prepared::SHORTEST;
use crate::store::{Lease, Store};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Builds an [`Idempotency`] handle.
#[must_use]
pub struct IdempotencyBuilder {
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) settings: Settings,
}

impl Default for IdempotencyBuilder {
    fn default() -> Self {
        Self {
            store: None,
            settings: Settings {
                namespace: "default".into(),
                ttl: DAY,
                lease: Lease { duration: Duration::from_secs(30), unknown_ttl: 30 * DAY },
                wait: None,
                max_attempts: 10,
                max_run: HOUR,
                on_lost: OnLost::GoOn,
                max_result_bytes: None,
                store_timeout: Duration::from_secs(5),
                record_patience: 10 * MINUTE,
                fingerprint_secret: None,
                codec: None,
                on_replay: None,
                expose_keys: false,
            },
        }
    }
}

impl IdempotencyBuilder {
    /// Where records are kept. Required. An `Arc<dyn Store>` is a store too.
    ///
    /// Handles that are given the same `Arc<dyn Store>` look at a key together when calls of several of them wait for it.
    pub fn store(mut self, store: impl Store) -> Self {
        let mut store = Some(store);
        let any: &mut dyn Any = &mut store;
        let shared = any.downcast_mut().and_then(Option::<Arc<dyn Store>>::take);
        self.store = shared.or_else(|| store.map(|store| -> Arc<dyn Store> { Arc::new(store) }));
        self
    }

    /// The first segment of every key, so that several applications can share a store. Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<Box<str>>) -> Self {
        self.settings.namespace = namespace.into();
        self
    }

    /// How long a finished record is kept, counted from completion. Default: 24 hours.
    ///
    /// It has to be longer than the time within which a duplicate may still arrive: a queue that delivers again after
    /// three days needs more than three days.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long an attempt counts as alive without a word. A heartbeat renews it every third of that while the body
    /// runs. Default: 30 seconds.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease.duration = lease;
        self
    }

    /// How long a record without an answer is kept, counted from the end of its lease. Default: 30 days.
    ///
    /// Only this frees a key whose outcome is unknown, unless somebody resolves it before.
    pub fn unknown_ttl(mut self, ttl: Duration) -> Self {
        self.settings.lease.unknown_ttl = ttl;
        self
    }

    /// How long a duplicate waits for the first call's result. Default: not at all.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = Some(wait);
        self
    }

    /// How many attempts a key may have before its outcome counts as unknown. Default: 10.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.settings.max_attempts = attempts;
        self
    }

    /// How long the heartbeat renews the lease of a body that does not end. Default: 1 hour.
    ///
    /// A body that runs longer keeps its key for one lease more. Then its lease is [lost](crate::Attempt::is_lost), and it
    /// may still complete if nobody has taken over.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.settings.max_run = max_run;
        self
    }

    /// What happens to a body whose lease is lost while it runs. Default: it goes on.
    pub fn on_lost(mut self, policy: OnLost) -> Self {
        self.settings.on_lost = policy;
        self
    }

    /// The largest result in bytes, after the codec. A larger one is not kept, and its duplicates get
    /// [`NotRetained`](crate::Error::NotRetained). Default: what the store can hold.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_result_bytes = Some(bytes);
        self
    }

    /// How long a call waits for the store before its body, retries included, and how long its caller waits after the
    /// body until the result is recorded. Default: 5 seconds.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.settings.store_timeout = timeout;
        self
    }

    /// How long the library goes on trying to record a result, or to release a key, when the store does not answer.
    /// Default: 10 minutes. The caller waits for the first [`store_timeout`](Self::store_timeout) of it only.
    pub fn record_patience(mut self, patience: Duration) -> Self {
        self.settings.record_patience = patience;
        self
    }

    /// Makes fingerprints an HMAC under this secret, so that who can read the store cannot try out likely arguments.
    ///
    /// All processes that share records need the same one; after a change, records that were made before are
    /// [`KeyReused`](crate::Error::KeyReused).
    pub fn fingerprint_secret(mut self, secret: impl Into<Arc<[u8]>>) -> Self {
        self.settings.fingerprint_secret = Some(secret.into());
        self
    }

    /// Encrypts or compresses what is stored.
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.settings.codec = Some(Arc::new(codec));
        self
    }

    /// Calls `hook` before a stored result is given to a duplicate. A panic of the hook is the caller's; the record
    /// stays as it is.
    pub fn on_replay(mut self, hook: impl Fn(&ReplayInfo<'_>) + Send + Sync + 'static) -> Self {
        self.settings.on_replay = Some(Arc::new(hook));
        self
    }

    /// Puts keys into events. Off by default, because a key is made of argument values.
    pub fn expose_keys(mut self, expose: bool) -> Self {
        self.settings.expose_keys = expose;
        self
    }

    /// The handle.
    ///
    /// # Errors
    /// Says which setting cannot work.
    pub fn build(self) -> Result<Idempotency, ConfigError> {
        let settings = &self.settings;
        let positive = [
            ("ttl", settings.ttl),
            ("lease", settings.lease.duration),
            ("unknown_ttl", settings.lease.unknown_ttl),
            ("max_run", settings.max_run),
            ("store_timeout", settings.store_timeout),
            ("record_patience", settings.record_patience),
        ];
        if let Some((setting, _)) = positive.iter().find(|(_, duration)| *duration < SHORTEST) {
            return Err(ConfigError::TooShort { setting });
        }
        if settings.max_attempts == 0 {
            return Err(ConfigError::NoAttempts);
        }
        if settings.namespace.trim().is_empty() || !key::names_fit(&settings.namespace, "") {
            return Err(ConfigError::Namespace);
        }
        if self.store.is_none() {
            return Err(ConfigError::NoStore);
        }
        Ok(Idempotency::from_parts(self.store, self.settings))
    }
}

impl fmt::Debug for IdempotencyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyBuilder").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Why a handle could not be built or installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No store was given.
    NoStore,
    /// A duration is shorter than a millisecond.
    TooShort {
        /// The setting's name.
        setting: &'static str,
    },
    /// `max_attempts` is zero.
    NoAttempts,
    /// The namespace is blank, or longer than the 180 bytes that it shares with the operation's name.
    Namespace,
    /// A handle was installed before.
    Installed,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore => f.write_str("no store was given: call `.store(…)` before `.build()`"),
            Self::TooShort { setting } => write!(f, "`{setting}` must be at least a millisecond"),
            Self::NoAttempts => f.write_str("`max_attempts` must be at least 1"),
            Self::Namespace => f.write_str(
                "the namespace must not be blank, nor longer than the 180 bytes it shares with an operation's name",
            ),
            Self::Installed => f.write_str("an `Idempotency` handle is already installed in this process"),
        }
    }
}

impl std::error::Error for ConfigError {}
