//! One try to run a body, and what the body can ask of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::asking::ask;
use crate::call::Call;
use crate::downstream;
use crate::error::Error;
use crate::key::RecordKey;
use crate::policy::OnCrash;
use crate::steps::Steps;
use crate::store::{Grant, Write};

/// One try to run a body. Inside the body [`attempt()`](crate::attempt()) gives it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// `None` in a body that runs unprotected.
    owned: Option<Arc<Owned>>,
    /// The protected attempt around a body that runs unprotected.
    around: Option<Arc<Owned>>,
}

/// An attempt that was granted a record.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) call: Arc<Call>,
    pub(crate) number: u32,
    fence: u64,
    /// When the reservation was asked for, on this machine's monotonic clock: the lease is counted from no later.
    pub(crate) asked_at: Instant,
    pub(crate) steps: Steps,
    effects_begun: AtomicBool,
    /// How often the body has been polled.
    polls: AtomicU64,
    /// The poll during which the body was last given an error of this crate; 0: none.
    gave_error_at: AtomicU64,
    /// Whether the body has ended, and only its recording goes on.
    ended: AtomicBool,
    lost: AtomicBool,
    on_lost: Notify,
}

impl Attempt {
    pub(crate) const UNPROTECTED: Self = Self { owned: None, around: None };

    /// That of an unprotected body which is called inside the body of `outer`.
    pub(crate) fn unprotected_in(outer: Option<&Self>) -> Self {
        Self { owned: None, around: outer.and_then(Self::nearest).cloned() }
    }

    pub(crate) fn of(owned: &Arc<Owned>) -> Self {
        Self { owned: Some(Arc::clone(owned)), around: None }
    }

    /// This attempt if it is protected.
    pub(crate) fn owned(&self) -> Option<&Arc<Owned>> {
        self.owned.as_ref()
    }

    /// This attempt if it is protected, else the protected one around it.
    pub(crate) fn nearest(&self) -> Option<&Arc<Owned>> {
        self.owned.as_ref().or(self.around.as_ref())
    }

    /// The key of the call. `None` in a body that runs unprotected.
    pub fn key(&self) -> Option<&RecordKey> {
        self.owned.as_ref().map(|owned| &owned.call.key)
    }

    /// 1 for the first attempt, one more for each that took over from an attempt before. 1 in a body that runs
    /// unprotected.
    pub fn number(&self) -> u32 {
        self.owned.as_ref().map_or(1, |owned| owned.number)
    }

    /// A number that is greater than that of every earlier attempt with this key, as long as the store's clock is not
    /// set back. Pass it to systems that refuse a smaller one than they have seen. 0 in a body that runs unprotected.
    pub fn fencing_token(&self) -> u64 {
        self.owned.as_ref().map_or(0, |owned| owned.fence)
    }

    /// Says that from now on an effect may have happened.
    ///
    /// It is written down before this returns, and renews the lease. From then on `on_crash = "retry_before_effects"`
    /// refuses instead of running again, and an `Err` under `on_error = "retry"` refuses instead of releasing.
    ///
    /// In a call in a transaction of the caller's nothing is written: what the transaction does ends with it. There it only
    /// says that something else has happened, so that an `Err` under `on_error = "retry"` refuses.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when another attempt has taken over, and [`Error::Store`] when the store does not answer
    /// within the handle's `store_timeout`. Nothing may be done then: return the error.
    pub async fn begin_effects(&self) -> Result<(), Error> {
        let Some(owned) = &self.owned else { return Ok(()) };
        owned.begin_effects().await.inspect_err(|_| owned.note_error())
    }

    /// A key for a call to another API that takes one: the same for every attempt with this key, and another for every
    /// `purpose`. A UUID (of version 8, RFC 9562), which fits where keys must be short.
    ///
    /// With it the other side recognises a second try of the same call. In a body that runs unprotected it is a new one
    /// each time.
    pub fn downstream_key(&self, purpose: &str) -> String {
        match &self.owned {
            Some(owned) => downstream::key(owned.call.key.as_str(), purpose),
            None => downstream::random(),
        }
    }

    /// Whether the key is known to be another attempt's, or the store has not confirmed the lease for its whole length.
    pub fn is_lost(&self) -> bool {
        self.owned.as_ref().is_some_and(|owned| owned.is_lost())
    }

    /// Ends when [`is_lost`](Self::is_lost) becomes true; never in a body that runs unprotected.
    pub async fn lost(&self) {
        let Some(owned) = &self.owned else { return std::future::pending().await };
        loop {
            let woken = owned.on_lost.notified();
            if owned.is_lost() {
                return;
            }
            woken.await;
        }
    }
}

impl Owned {
    pub(crate) fn new(call: Arc<Call>, grant: Grant, asked_at: Instant) -> Self {
        Self {
            call,
            number: grant.attempt,
            fence: grant.fence,
            asked_at,
            steps: Steps::new(grant.steps),
            effects_begun: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            gave_error_at: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            on_lost: Notify::new(),
        }
    }

    async fn begin_effects(&self) -> Result<(), Error> {
        let Call { core, key, lease, owner, in_transaction, .. } = &*self.call;
        if *in_transaction {
            // Its record says so from the beginning, for whoever sees it committed without a result.
            self.effects_begun.store(true, Ordering::Release);
            return Ok(());
        }
        let asked = ask(core, "begin_effects", core.settings.store_timeout, |store| {
            store.begin_effects(key, *owner, *lease)
        });
        match asked.await {
            Ok(Write::Applied) => {
                self.effects_begun.store(true, Ordering::Release);
                Ok(())
            }
            Ok(Write::Lost) => {
                self.lose();
                Err(Error::LeaseLost { operation: key.operation().clone() })
            }
            Err(error) => Err(self.call.store_error(error)),
        }
    }

    /// Whether the body has said that an effect may have happened, or nobody knows what a step of it did where that
    /// matters.
    pub(crate) fn may_have_acted(&self) -> bool {
        let in_doubt = self.call.on_crash != OnCrash::Retry && self.steps.in_doubt();
        in_doubt || self.effects_begun.load(Ordering::Acquire)
    }

    /// Notes that the body is about to be polled.
    pub(crate) fn polling(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the body was given an error of this crate.
    pub(crate) fn note_error(&self) {
        self.gave_error_at.store(self.polls.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether the body was given an error of this crate and ended right then, without waiting for anything in between:
    /// its own `Err` is then made from that error. One that the body has dealt with and gone on from is another matter.
    pub(crate) fn passes_error_on(&self) -> bool {
        let at = self.gave_error_at.load(Ordering::Relaxed);
        at > 0 && at == self.polls.load(Ordering::Relaxed)
    }

    /// Notes that the body has ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Tells the body that the key may be another attempt's.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.on_lost.notify_waiters();
    }
}
