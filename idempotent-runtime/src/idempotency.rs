//! The handle: a store and the defaults for the operations that use it.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::background::Background;
use crate::builder::{ConfigError, IdempotencyBuilder};
use crate::codec::Codec;
use crate::context::Context;
use crate::key::{OperationName, RecordKey};
use crate::meters::describe_metrics;
use crate::operation::Operation;
use crate::policy::OnLost;
use crate::store::{Lease, Store};
use crate::stores::ConnectError;
use crate::waiting::Waiting;

static INSTALLED: OnceLock<Idempotency> = OnceLock::new();
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A store and the defaults for the operations that use it. Cloning it is cheap, and clones are one handle.
///
/// An annotated function takes the handle from its `store` option; without one it takes that of [`within`](Self::within),
/// and without that the one that was [installed](Self::install). With none of them a call is
/// [`NotConfigured`](crate::Error::NotConfigured) and its body does not run.
///
/// ```
/// # use idempotent_runtime::{Error, Idempotency, stores::MemoryStore};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let charge = idempotency.operation("charge");
/// let first = charge.key("order-1").fingerprint(&250).run(|_| async { Ok::<_, Error>(1) }).await?;
/// let second = charge.key("order-1").fingerprint(&250).run(|_| async { Ok::<_, Error>(2) }).await?;
/// assert_eq!((first, second), (1, 1));
/// # Ok::<_, Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Idempotency {
    core: Arc<Core>,
}

/// What the clones of one handle share.
pub(crate) struct Core {
    /// Told apart from every other handle, for as long as the process lives.
    pub(crate) id: u64,
    /// `None`: the handle is disabled.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) settings: Settings,
    pub(crate) background: Background,
    /// `None` without a store.
    pub(crate) waiting: Option<Arc<Waiting>>,
    claims: Mutex<HashMap<&'static str, Claim>>,
    warned: AtomicBool,
}

/// Which annotated function uses a name: the address of its static, and the type where it is a method of several.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) site: usize,
    pub(crate) of_type: Option<&'static str>,
}

/// What a handle was built with.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) namespace: Box<str>,
    pub(crate) ttl: Duration,
    pub(crate) lease: Lease,
    pub(crate) wait: Option<Duration>,
    pub(crate) max_attempts: u32,
    pub(crate) max_run: Duration,
    pub(crate) on_lost: OnLost,
    pub(crate) max_result_bytes: Option<usize>,
    pub(crate) store_timeout: Duration,
    pub(crate) record_patience: Duration,
    pub(crate) fingerprint_secret: Option<Arc<[u8]>>,
    pub(crate) codec: Option<Arc<dyn Codec>>,
    pub(crate) on_replay: Option<ReplayHook>,
    pub(crate) expose_keys: bool,
}

/// A function that is told of every replay.
pub(crate) type ReplayHook = Arc<dyn Fn(&ReplayInfo<'_>) + Send + Sync>;

/// What an [`on_replay`](IdempotencyBuilder::on_replay) hook is told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReplayInfo<'a> {
    /// The operation that was called.
    pub operation: &'a str,
    /// The record whose result is given.
    pub key: &'a RecordKey,
    /// The attempt that made the result.
    pub attempt: u32,
    /// Whether the result is a stored error.
    pub failed: bool,
}

impl Idempotency {
    /// A handle with the default settings; see [`IdempotencyBuilder`] for them.
    pub fn new(store: impl Store) -> Self {
        let builder = IdempotencyBuilder::default().store(store);
        Self::from_parts(builder.store, builder.settings)
    }

    /// A handle with the default settings on the store that `url` names; see [`stores::connect`](crate::stores::connect).
    ///
    /// For other settings: `Idempotency::builder().store(stores::connect(url).await?)`.
    ///
    /// # Errors
    /// Those of [`stores::connect`](crate::stores::connect).
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        let store = crate::stores::connect(url).await?;
        Ok(Self::from_parts(Some(store), IdempotencyBuilder::default().settings))
    }

    /// Builds a handle with other settings.
    pub fn builder() -> IdempotencyBuilder {
        IdempotencyBuilder::default()
    }

    /// A handle without a store, for tests of an application: every body runs, every time, unprotected.
    ///
    /// The first such call is warned of, once for each handle.
    pub fn disabled() -> Self {
        Self::from_parts(None, IdempotencyBuilder::default().settings)
    }

    pub(crate) fn from_parts(store: Option<Arc<dyn Store>>, settings: Settings) -> Self {
        describe_metrics();
        Self {
            core: Arc::new(Core {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                waiting: store.as_ref().map(Waiting::at),
                store,
                settings,
                background: Background::default(),
                claims: Mutex::default(),
                warned: AtomicBool::new(false),
            }),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The operation called `name`, to run closures under without the macro.
    ///
    /// Whoever uses a name in two places says that they are one operation. Nobody checks that here, as it is checked
    /// for annotated functions.
    pub fn operation(&self, name: impl Into<OperationName>) -> Operation {
        Operation::new(self, name.into())
    }

    /// Makes this the handle of every call in this process that has no nearer one.
    ///
    /// # Errors
    /// [`ConfigError::Installed`] when there is an installed handle already; it stays.
    pub fn install(&self) -> Result<(), ConfigError> {
        INSTALLED.set(self.clone()).map_err(|_| ConfigError::Installed)
    }

    /// Runs `future` with this as the handle of its calls. Tasks that it spawns do not inherit it.
    pub async fn within<F: Future>(&self, future: F) -> F::Output {
        let context = Context { handle: Some(self.clone()), ..Context::current() };
        context.scope(future).await
    }

    /// The handle of the running task, or the installed one.
    pub(crate) fn current() -> Option<Self> {
        Context::current().handle.or_else(|| INSTALLED.get().cloned())
    }

    /// The store, for administration; `None` on a disabled handle.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.core.store.as_ref()
    }

    /// Waits until everything that goes on in the background has ended: results still to be recorded, keys still to be
    /// released, bodies of `detached` functions.
    ///
    /// It does not stop new calls; stop whatever makes them first. Call it before the runtime shuts down: what is cut off
    /// then leaves its key to the end of the lease.
    pub async fn shutdown(&self) {
        self.core.background.drain().await;
    }
}

impl Core {
    /// Notes who uses `name`. `false`: somebody else does.
    pub(crate) fn claim(&self, name: &'static str, by: Claim) -> bool {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        *claims.entry(name).or_insert(by) == by
    }

    /// Whether both keep their records in the same store, as far as that can be seen from here.
    pub(crate) fn shares_store_with(&self, other: &Self) -> bool {
        match (&self.waiting, &other.waiting) {
            (Some(waiting), Some(other)) => Arc::ptr_eq(waiting, other),
            _ => false,
        }
    }

    /// `true` the first time.
    pub(crate) fn warn_once(&self) -> bool {
        !self.warned.swap(true, Ordering::Relaxed)
    }
}

impl Core {
    /// The largest result that can be kept, after the codec.
    pub(crate) fn max_result_bytes(&self) -> Option<usize> {
        let of_store = self.store.as_deref().and_then(Store::max_result_bytes);
        match (self.settings.max_result_bytes, of_store) {
            (Some(own), Some(of_store)) => Some(own.min(of_store)),
            (own, of_store) => own.or(of_store),
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency")
            .field("store", &self.core.store)
            .field("namespace", &self.core.settings.namespace)
            .finish_non_exhaustive()
    }
}
