//! A call before it begins: key and fingerprint are taken here, where the body cannot change its arguments yet.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::background::Background;
use crate::call::Call;
use crate::context::{Context, Slot};
use crate::error::Error;
use crate::events;
use crate::fingerprint::{Fingerprint, Fingerprinter, Skip};
use crate::idempotency::{Core, Idempotency};
use crate::key::{self, KeyParts, OperationName, RecordKey};
use crate::outcome::Outcome;
use crate::policy::{OnCrash, OnLost, OnMissingKey};
use crate::shim::Site;
use crate::store::{Lease, OwnerToken, TakeOver};
use crate::transaction;

/// What an operation says about itself; what it leaves out is the handle's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policies {
    pub(crate) ttl: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) version: u32,
    pub(crate) on_crash: OnCrash,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) on_lost: Option<OnLost>,
    /// Whether the application is asked before a second run.
    pub(crate) reconciles: bool,
    /// Whether the call is made in a transaction of the caller's.
    pub(crate) in_transaction: bool,
}

impl Policies {
    pub(crate) const DEFAULT: Self = Self {
        ttl: None,
        lease: None,
        wait: None,
        version: 1,
        on_crash: OnCrash::Refuse,
        on_missing_key: OnMissingKey::Error,
        on_lost: None,
        reconciles: false,
        in_transaction: false,
    };
}

/// The shortest ttl and lease.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);

pub(crate) const DETACHED_NEEDS_RUNTIME: &str = "a `detached` function needs a tokio runtime to run on";

const NO_HANDLE: &str = "there is no `Idempotency` handle: give one with `store = …`, run the call inside \
                         `idempotency.within(…)`, or call `idempotency.install()` at start; a spawned task does not inherit `within`";

/// One call before it begins.
///
/// Behind a pointer, because the state of the hash is large and a call is handed on several times before it begins.
pub struct Prepared(Box<Parts>);

struct Parts {
    handle: Option<Idempotency>,
    operation: OperationName,
    policies: Policies,
    site: Option<&'static Site>,
    /// The type whose method is called, where only that may tell two calls apart.
    of_type: Option<&'static str>,
    key: KeyParts,
    whole: bool,
    fingerprint: Fingerprinter,
}

/// A call that is ready to begin.
pub(crate) enum Ready {
    Protected(Arc<Call>),
    Unprotected(Unprotected),
}

/// What is known of a call whose body runs unprotected.
#[derive(Debug)]
pub(crate) struct Unprotected {
    pub(crate) context: Context,
    pub(crate) slot: Option<Arc<Slot>>,
    pub(crate) background: Background,
    pub(crate) operation: OperationName,
    pub(crate) started: Instant,
}

impl Unprotected {
    /// Notes that the body has ended.
    pub(crate) fn ended(&self) {
        if let Some(slot) = &self.slot {
            slot.set(Outcome::Unprotected);
        }
        events::ended_unprotected(&self.operation, self.started);
    }
}

/// What makes a call the same as another.
enum Identity {
    Complete(RecordKey, Fingerprint),
    /// The selector of a key part that is null or empty.
    Missing(&'static str),
}

impl Prepared {
    /// A call of an annotated function.
    pub(crate) fn at(site: &'static Site, handle: Option<Idempotency>) -> Self {
        Self::new(handle, OperationName::from_static(site.name), site.policies, Some(site))
    }

    /// A call without a function of its own.
    pub(crate) fn of(handle: Option<Idempotency>, operation: OperationName, policies: Policies) -> Self {
        Self::new(handle, operation, policies, None)
    }

    fn new(
        handle: Option<Idempotency>,
        operation: OperationName,
        policies: Policies,
        site: Option<&'static Site>,
    ) -> Self {
        let (key, fingerprint) = (KeyParts::new(), Fingerprinter::new());
        Self(Box::new(Parts {
            handle,
            operation,
            policies,
            site,
            of_type: None,
            key,
            whole: false,
            fingerprint,
        }))
    }

    /// The method of this type is called, and nothing in key or fingerprint says so.
    pub(crate) fn of_type(&mut self, name: &'static str) {
        self.0.of_type = Some(name);
    }

    /// One part of the key, with the selector's text for errors.
    pub fn key<T: Serialize + ?Sized>(&mut self, selector: &'static str, value: &T) {
        self.0.key.part(selector, value);
    }

    /// `key = "*"`: the fingerprint is the key.
    pub fn key_from_fingerprint(&mut self) {
        self.0.whole = true;
    }

    /// One fingerprinted argument, or one value selected by `fingerprint = "…"`, without what is skipped in it.
    pub fn argument<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T, skip: Skip) {
        self.0.fingerprint.argument_without(name, value, skip);
    }

    /// The application is asked before a second run.
    pub(crate) fn reconciles(&mut self) {
        self.0.policies.reconciles = true;
    }

    /// The call is made in a transaction of the caller's.
    pub(crate) fn in_transaction(&mut self) {
        self.0.policies.in_transaction = true;
    }

    /// The call, made in the running task.
    pub(crate) fn ready(self, started: Instant) -> Result<Ready, Error> {
        self.0.ready(started)
    }

    /// The key under which the store keeps the call's record.
    pub(crate) fn record_key(self) -> Result<RecordKey, Error> {
        self.0.record_key()
    }
}

impl Parts {
    fn ready(mut self: Box<Self>, started: Instant) -> Result<Ready, Error> {
        let mut caller = Context::current();
        // The first call directly inside `with_outcome` takes the slot; its body does not see it.
        let slot = caller.slot.take().filter(|slot| slot.claim());
        let operation = self.operation.clone();
        let Some(core) = self.handle.take().map(|handle| Arc::clone(handle.core())) else {
            return Err(Error::NotConfigured { operation, reason: NO_HANDLE });
        };
        if self.site.is_some_and(|site| site.detached) && Handle::try_current().is_err() {
            return Err(Error::NotConfigured { operation, reason: DETACHED_NEEDS_RUNTIME });
        }
        if core.store.is_none() && self.policies.in_transaction {
            return Err(Error::NotConfigured { operation, reason: transaction::DISABLED });
        }
        if core.store.is_none() {
            if core.warn_once() {
                events::unprotected(&operation, "its `Idempotency` handle is disabled");
            }
            return Ok(unprotected(&core, caller, slot, operation, started));
        }
        let on_missing_key = self.policies.on_missing_key;
        let (policies, identity) = (self.policies, self.identify(&core)?);
        let (key, fingerprint) = match identity {
            Identity::Complete(key, fingerprint) => (key, fingerprint),
            Identity::Missing(part) => {
                return match on_missing_key {
                    OnMissingKey::Error => Err(Error::MissingKey { operation, part }),
                    OnMissingKey::Run => {
                        events::unprotected(&operation, "its key is missing");
                        Ok(unprotected(&core, caller, slot, operation, started))
                    }
                };
            }
        };
        let Policies { ttl, lease, wait, version, on_crash, on_lost, reconciles, in_transaction, .. } =
            policies;
        let defaults = &core.settings;
        Ok(Ready::Protected(Arc::new(Call {
            started,
            key,
            fingerprint,
            owner: OwnerToken::random(),
            lease: Lease { duration: lease.unwrap_or(defaults.lease.duration), ..defaults.lease },
            ttl: ttl.unwrap_or(defaults.ttl),
            own_ttl: OnceLock::new(),
            wait: wait.or(defaults.wait).or(in_transaction.then_some(transaction::WAIT)),
            in_transaction,
            on_crash,
            on_lost: on_lost.unwrap_or(defaults.on_lost),
            take_over: if reconciles { TakeOver::Always } else { on_crash.into() },
            version,
            caller,
            slot,
            core,
        })))
    }

    /// The key under which the store keeps the call's record.
    fn record_key(mut self: Box<Self>) -> Result<RecordKey, Error> {
        let operation = self.operation.clone();
        let Some(core) = self.handle.take().map(|handle| Arc::clone(handle.core())) else {
            return Err(Error::NotConfigured { operation, reason: NO_HANDLE });
        };
        match self.identify(&core)? {
            Identity::Complete(key, _) => Ok(key),
            Identity::Missing(part) => Err(Error::MissingKey { operation, part }),
        }
    }

    /// What makes the call the same as another.
    fn identify(mut self: Box<Self>, core: &Core) -> Result<Identity, Error> {
        self.check_durations()?;
        self.check_name(core)?;
        let operation = self.operation;
        let mut fingerprint = self.fingerprint.finish_in_place().map_err(|error| Error::Argument {
            operation: operation.clone(),
            argument: error.argument.into(),
            reason: error.reason.into(),
        })?;
        if let Some(secret) = &core.settings.fingerprint_secret {
            fingerprint = fingerprint.keyed(secret);
        }
        if self.whole {
            self.key.whole(&fingerprint);
        }
        if let Some(part) = self.key.missing() {
            return Ok(Identity::Missing(part));
        }
        let template = self.site.and_then(|site| site.template);
        let key = self.key.into_key(&core.settings.namespace, &operation, template);
        key.map(|key| Identity::Complete(key, fingerprint)).map_err(|error| Error::Argument {
            operation,
            argument: error.selector.into(),
            reason: error.reason.into(),
        })
    }

    /// What a handle refuses when it is built, an operation cannot ask for either: with a lease of nothing two bodies
    /// would run beside each other, and a ttl of nothing would keep no result.
    fn check_durations(&self) -> Result<(), Error> {
        let Policies { ttl, lease, .. } = self.policies;
        if [ttl, lease].into_iter().flatten().any(|duration| duration < SHORTEST) {
            let reason = "the operation's `ttl` and `lease` must be at least a millisecond";
            return Err(Error::NotConfigured { operation: self.operation.clone(), reason });
        }
        Ok(())
    }

    /// Checks once for each function and handle that the operation's name is its own and leaves room for a key.
    fn check_name(&self, core: &Core) -> Result<(), Error> {
        if self.site.is_some_and(|site| site.is_known_to(core.id, self.of_type)) {
            return Ok(());
        }
        let operation = self.operation.clone();
        if self.operation.is_empty() || !key::names_fit(&core.settings.namespace, &self.operation) {
            let reason =
                "the operation's name is empty, or longer than the 180 bytes it shares with the namespace";
            return Err(Error::NotConfigured { operation, reason });
        }
        match self.site {
            Some(site) if !site.claim(core, self.of_type) => Err(Error::OperationConflict { operation }),
            _ => Ok(()),
        }
    }
}

/// A call whose body runs unprotected.
fn unprotected(
    core: &Core,
    caller: Context,
    slot: Option<Arc<Slot>>,
    operation: OperationName,
    started: Instant,
) -> Ready {
    let context = Context { attempt: Some(Attempt::unprotected_in(caller.attempt.as_ref())), ..caller };
    let background = core.background.clone();
    Ready::Unprotected(Unprotected { context, slot, background, operation, started })
}

impl fmt::Debug for Prepared {
    /// Without key and arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("operation", &self.0.operation).finish_non_exhaustive()
    }
}
